package webfetch

import (
	"net/netip"
	"strings"
	"testing"
)

func TestPublic(t *testing.T) {
	for _, tt := range []struct {
		address string
		want    bool
	}{
		{"8.8.8.8", true}, {"1.1.1.1", true}, {"93.184.216.34", true}, {"100.63.255.255", true}, {"100.128.0.0", true},
		{"172.15.255.255", true}, {"172.32.0.0", true}, {"198.17.255.255", true}, {"198.20.0.0", true}, {"223.255.255.255", true},
		{"192.167.255.255", true}, {"192.169.0.0", true}, {"169.253.255.255", true}, {"11.0.0.0", true}, {"1.0.0.0", true},
		{"2606:2800:220:1:248:1893:25c8:1946", true}, {"2a00:1450::1", true}, {"2001:4860:4860::8888", true}, {"::ffff:8.8.8.8", true},
		{"2001:200::1", true}, {"3ffe::1", true},

		{"0.0.0.0", false}, {"0.1.2.3", false}, {"0.255.255.255", false}, {"10.0.0.0", false}, {"10.255.255.255", false},
		{"100.64.0.0", false}, {"100.100.100.200", false}, {"100.127.255.255", false}, {"127.0.0.1", false}, {"127.255.255.254", false},
		{"169.254.0.1", false}, {"169.254.169.254", false}, {"172.16.0.1", false}, {"172.31.255.255", false}, {"192.0.0.8", false},
		{"192.0.2.1", false}, {"192.88.99.1", false}, {"192.168.0.1", false}, {"198.18.0.1", false}, {"198.19.255.255", false},
		{"198.51.100.1", false}, {"203.0.113.1", false}, {"224.0.0.1", false}, {"239.255.255.250", false}, {"240.0.0.1", false}, {"255.255.255.255", false},

		{"::", false}, {"::1", false}, {"::7f00:1", false}, {"::ffff:0:0", false}, {"::ffff:127.0.0.1", false}, {"::ffff:10.0.0.1", false},
		{"::ffff:169.254.169.254", false}, {"::ffff:0:127.0.0.1", false}, {"64:ff9b::8.8.8.8", false}, {"64:ff9b::a00:1", false}, {"64:ff9b:1::1", false},
		{"100::1", false}, {"2001::1", false}, {"2001:0:4136:e378:8000:63bf:3fff:fdd2", false}, {"2001:10::1", false}, {"2001:db8::1", false},
		{"2002:7f00:1::", false}, {"2002:808:808::1", false}, {"3fff::1", false}, {"4000::1", false}, {"5f00::1", false},
		{"fc00::1", false}, {"fd00:ec2::254", false}, {"fe80::1", false}, {"fe80::1%eth0", false}, {"2a00:1450::1%eth0", false}, {"fec0::1", false}, {"ff02::1", false}, {"1fff::1", false},
	} {
		if got := public(netip.MustParseAddr(tt.address)); got != tt.want {
			t.Errorf("public(%s) = %v, want %v", tt.address, got, tt.want)
		}
	}
	if public(netip.Addr{}) {
		t.Error("no address is public")
	}
}

func TestControl(t *testing.T) {
	for _, tt := range []struct {
		address string
		ok      bool
	}{
		{"8.8.8.8:443", true}, {"[2a00:1450::1]:80", true},
		{"127.0.0.1:80", false}, {"[::1]:80", false}, {"[fe80::1%lo]:80", false}, {"[::ffff:10.0.0.1]:80", false},
		{"localhost:80", false}, {"8.8.8.8", false}, {"", false}, {"/run/docker.sock", false},
	} {
		if err := control("tcp", tt.address, nil); (err == nil) != tt.ok {
			t.Errorf("control(%s): %v", tt.address, err)
		}
	}
}

func TestParseURL(t *testing.T) {
	for _, tt := range []struct {
		url string
		ok  bool
	}{
		{"https://example.com", true}, {"http://example.com:8080/a?b=c#d", true}, {"HTTPS://EXAMPLE.COM/ü", true}, {"http://8.8.8.8/", true},
		{"http://[2a00:1450::1]/", true}, {"https://example.com/%20", true},

		{"", false}, {"example.com", false}, {"/path", false}, {"//example.com/x", false}, {"https:example.com", false}, {"https://", false}, {"https:///x", false}, {"http://:80/", false},
		{"ftp://example.com", false}, {"file:///etc/passwd", false}, {"gopher://example.com", false}, {"data:text/html,x", false}, {"javascript:alert(1)", false}, {"unix:///run/x", false},
		{"https://user@example.com", false}, {"https://user:pass@example.com", false}, {"https://@example.com", false}, {"https://example.com@127.0.0.1/", false},
		{"https://example.com/a b", false}, {"https://example.com/\n", false}, {" https://example.com", false}, {"https://example.com\\@127.0.0.1", false}, {"https://exa\x00mple.com", false},
		{"http://127.0.0.1/", false}, {"http://[::1]/", false}, {"http://[::ffff:127.0.0.1]/", false}, {"http://0.0.0.0:7331/", false}, {"http://169.254.169.254/latest/meta-data", false}, {"http://[fe80::1%25eth0]/", false},
		{"https://example.com/" + strings.Repeat("x", urlMax), false}, {"http://example.com:port/", false}, {"http://[::1/", false},
	} {
		u, err := parseURL(tt.url)
		if (err == nil) != tt.ok {
			t.Errorf("parseURL(%.60q) = %v, %v; want ok %v", tt.url, u, err, tt.ok)
		}
	}
}

// Whatever a model sends, what passes is a plain URL of a web server, and stays
// one when it is written out and read again.
func FuzzParseURL(f *testing.F) {
	for _, s := range []string{"https://example.com/a?b#c", "http://user:p@host", "http://[::1]:80/", "http://0x7f.1/", "http://①②⑦.⓪.⓪.①/", "https://a\\@b/", "http://2130706433/", "http://[::ffff:7f00:1]/", "//x", "http:opaque", "https://example.com:443:80/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := parseURL(text)
		if err != nil {
			return
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Hostname() == "" || u.Opaque != "" {
			t.Errorf("%q passes as %+v", text, u)
		}
		if a, err := netip.ParseAddr(u.Hostname()); err == nil && !public(a) {
			t.Errorf("%q passes with the address %s", text, a)
		}
		again, err := parseURL(u.String())
		if err != nil || again.Host != u.Host || again.Scheme != u.Scheme {
			t.Errorf("%q passes, but written out it is %q: %v", text, u, err)
		}
	})
}

// An address is public at most if nothing the standard library knows speaks
// against it, and its other spellings fare the same or worse.
func FuzzPublic(f *testing.F) {
	for _, s := range []string{"127.0.0.1", "8.8.8.8", "::ffff:10.0.0.1", "64:ff9b::1", "2002::1", "fe80::1", "2a00::1"} {
		a := netip.MustParseAddr(s).As16()
		f.Add(a[:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, ok := netip.AddrFromSlice(b)
		if !ok {
			return
		}
		if public(a) != public(a.Unmap()) {
			t.Errorf("%s and %s differ", a, a.Unmap())
		}
		if !public(a) {
			return
		}
		u := a.Unmap()
		if u.IsPrivate() || u.IsLoopback() || u.IsUnspecified() || u.IsMulticast() || u.IsLinkLocalUnicast() || !u.IsGlobalUnicast() {
			t.Errorf("%s passes", a)
		}
		if a.WithZone("x").Zone() != "" && public(a.WithZone("x")) {
			t.Errorf("%s passes with a zone", a)
		}
	})
}
