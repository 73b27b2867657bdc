package bench

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/opt"
)

// payload is about what an ask's batch holds.
var payload = []byte(strings.Repeat("x", 600))

// floors measures what the machine does bare: nothing between a socket and its
// echo, nothing around a synced Put.
func (b *bench) floors() {
	b.t.Helper()
	b.rtt, b.put = b.echo().at(50), b.puts().at(50)
	b.line("floor", "WebSocket round trip %v, synced Put %v (medians of %d)", b.rtt, b.put, b.floor)
}

func (b *bench) echo() (d times) {
	b.t.Helper()
	var up websocket.Upgrader
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer c.Close()
		for {
			kind, data, err := c.ReadMessage()
			if err != nil || c.WriteMessage(kind, data) != nil {
				return
			}
		}
	}))
	defer server.Close()
	c, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(server.URL, "http"), nil)
	b.must(err)
	defer c.Close()
	for range b.floor {
		start := time.Now()
		b.must(c.WriteMessage(websocket.TextMessage, payload))
		_, _, err := c.ReadMessage()
		b.must(err)
		d = append(d, time.Since(start))
	}
	return d
}

func (b *bench) puts() (d times) {
	b.t.Helper()
	db, err := leveldb.OpenFile(filepath.Join(b.dir(), "db"), nil)
	b.must(err)
	defer db.Close()
	key := make([]byte, 16)
	for i := range b.floor {
		key[0], key[1] = byte(i>>8), byte(i)
		start := time.Now()
		b.must(db.Put(key, payload, &opt.WriteOptions{Sync: true}))
		d = append(d, time.Since(start))
	}
	return d
}
