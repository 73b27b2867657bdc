package quickjs

import (
	"context"
	"testing"
	"time"
)

func TestSpike(t *testing.T) {
	e, err := New(Options{})
	if err != nil { t.Fatal(err) }
	defer e.Close(context.Background())
	b := time.Now()
	vm, err := e.NewVM(context.Background(), func(a []string) (string, error) { t.Log(a); return "x", nil })
	if err != nil { t.Fatal(err) }
	t.Log("compile+vm", time.Since(b))
	b = time.Now()
	vm, err = e.NewVM(context.Background(), func(a []string) (string, error) { t.Log(a); return "x", nil })
	t.Log("vm", time.Since(b))
	b = time.Now()
	for _, src := range []string{"host(1+2, 'é', [1,2]); let s=0; for (let i=0;i<1e6;i++) s+=i; host(s)", "throw new TypeError('no')", "null.x", "syntax error", "let a=[]; for(;;) a.push(new Array(1000).fill(1))", "host(1)", "'x'.repeat(1e9)", "new Uint8Array(60e6); host(2)","new Uint8Array(90e6)", "(function f(){f()})()",
	"Promise.resolve(3).then(v => host('later', v)); 1"} {
		b = time.Now()
		_, err := vm.Eval(context.Background(), src, "p.js")
		t.Logf("%.30s %v: %#v", src, time.Since(b), err)
	}
	for _, src := range []string{"1"} {
		ctx, c := context.WithTimeout(context.Background(), 300*time.Millisecond)
		vm, _ := e.NewVM(context.Background(), func(a []string) (string, error) { t.Log(a); return "x", nil })
		b = time.Now()
		_, err := vm.Eval(ctx, src, "p.js")
		t.Logf("%.30s %v: %v", src, time.Since(b), err)
		c()
		vm.Close()
	}
}
