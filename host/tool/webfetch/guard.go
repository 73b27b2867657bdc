package webfetch

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"unicode"
)

// urlMax is the longest URL that is fetched, in bytes.
const urlMax = 4096

// refusal is what the guard says; it becomes the tool's error.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

func refused(format string, args ...any) error { return &refusal{fmt.Sprintf(format, args...)} }

// parseURL reads a URL that may be fetched, as far as its text tells.
func parseURL(text string) (*url.URL, error) {
	switch {
	case len(text) > urlMax:
		return nil, refused("the URL has %d bytes, at most %d", len(text), urlMax)
	case strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) || unicode.IsSpace(r) || r == '\\' || r == unicode.ReplacementChar
	}):
		return nil, refused("the URL holds a space, a backslash or a control character: encode it")
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, refused("this is not a URL: send one such as https://example.com/page")
	}
	return u, checkURL(u)
}

// checkURL is asked about the first URL and about each redirect.
func checkURL(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return refused("only http and https URLs are fetched, with the scheme written out")
	case u.User != nil:
		return refused("a URL with a user name or password is not fetched: leave them out")
	case u.Opaque != "" || u.Hostname() == "":
		return refused("the URL has no host")
	case len(u.String()) > urlMax:
		return refused("the URL is over %d bytes", urlMax)
	}
	// The dialer decides; this only says it earlier, and without a connection.
	if a, err := netip.ParseAddr(u.Hostname()); err == nil && !public(a) {
		return refused("the address %s is not public: only public pages are fetched", a)
	}
	return nil
}

// control runs when a socket exists and its address is final.
func control(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return refused("the address is not understood: only public pages are fetched")
	}
	a, err := netip.ParseAddr(host)
	if err != nil || !public(a) {
		return refused("the name leads to an address that is not public: only public pages are fetched")
	}
	return nil
}

// Public reports whether an address is one of the public internet, for others
// that are sent to an address by a stranger.
func Public(a netip.Addr) bool { return public(a) }

// public reports whether an address is one of the public internet.
func public(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" {
		return false
	}
	a = a.Unmap()
	if a.Is4() {
		return !within(a, private4)
	}
	return a.Is6() && global6.Contains(a) && !within(a, special6)
}

func within(a netip.Addr, list []netip.Prefix) bool {
	for _, p := range list {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// private4 is every IPv4 range that is not for the public internet.
var private4 = prefixes(
	"0.0.0.0/8",       // this host, on Linux the loopback
	"10.0.0.0/8",      // private
	"100.64.0.0/10",   // shared by a carrier's customers; clouds keep services there
	"127.0.0.0/8",     // loopback
	"169.254.0.0/16",  // link local: the metadata of clouds
	"172.16.0.0/12",   // private
	"192.0.0.0/24",    // protocol assignments
	"192.0.2.0/24",    // documentation
	"192.88.99.0/24",  // relays to IPv6
	"192.168.0.0/16",  // private
	"198.18.0.0/15",   // benchmarks
	"198.51.100.0/24", // documentation
	"203.0.113.0/24",  // documentation
	"224.0.0.0/4",     // multicast
	"240.0.0.0/4",     // reserved, and broadcast
)

// global6 is the only part of IPv6 that is given out to the public. Outside of
// it lie ::, ::1, IPv4 in IPv6 clothes (::/96, 64:ff9b::/96, 64:ff9b:1::/48),
// discard, unique local, link local, site local and multicast.
var global6 = netip.MustParsePrefix("2000::/3")

// special6 is what is inside of it and not public.
var special6 = prefixes(
	"2001::/23",     // protocol assignments; Teredo holds an IPv4 address
	"2001:db8::/32", // documentation
	"2002::/16",     // 6to4 holds an IPv4 address
	"3fff::/20",     // documentation
)

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}
