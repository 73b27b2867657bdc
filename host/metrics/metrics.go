package metrics

import (
	"bytes"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"meanwhile/host/question"
	"meanwhile/host/session"
	"meanwhile/shared/event"
)

const (
	underWayMax = 8192
	readersMax  = 4

	namespace = "meanwhile"
)

// Sources are asked when somebody reads. All are needed.
type Sources struct {
	Questions func() question.Stats
	Rows      func() []session.Row
	Clients   func() int
	Ready     func() error
}

// Metrics is the numbers of one host.
type Metrics struct {
	registry *prometheus.Registry

	asks      *prometheus.HistogramVec
	admission prometheus.Histogram
	admitted  prometheus.Counter
	sync      prometheus.Histogram
	batches   prometheus.Histogram
	bytes     prometheus.Counter

	mu       sync.Mutex
	underWay map[reply]time.Time // accepted, not admitted
}

type reply struct{ session, id string }

// New makes the numbers of one host.
func New(from Sources) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		asks: prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: "ask_seconds",
			Help:    "Time from an ask to its result.",
			Buckets: []float64{.01, .1, 1, 5, 15, 30, 60, 120, 300, 900, 3600, 4 * 3600, 24 * 3600}}, []string{"outcome"}),
		admission: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: "admission_seconds",
			Help:    "Time from an accepted late answer to its admission by the agent.",
			Buckets: []float64{.001, .01, .1, 1, 10, 60, 300, 3600, 4 * 3600, 24 * 3600}}),
		admitted: prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: "replies_admitted_total",
			Help: "Late answers that an agent read."}),
		sync: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: "sync_seconds",
			Help:    "Time of one write to disk with its fsync.",
			Buckets: []float64{.0001, .0002, .0005, .001, .002, .005, .01, .02, .05, .1, .5, 1, 5}}),
		batches: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: "sync_batches",
			Help:    "Changes that shared one write to disk.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 10)}),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: "sync_bytes_total",
			Help: "Bytes written to disk by changes of sessions."}),
		underWay: map[reply]time.Time{},
	}
	for _, outcome := range []string{"answered", "pending", "failed"} {
		m.asks.WithLabelValues(outcome) // a series that is not there yet reads as an error
	}
	m.registry.MustRegister(m.asks, m.admission, m.admitted, m.sync, m.batches, m.bytes, newGauges(from),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler serves the numbers to whoever was let in.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: readersMax})
}

// Settled is told of the outcome of an ask.
func (m *Metrics) Settled(o question.Outcome, took time.Duration) {
	outcome := "failed"
	switch o.Status {
	case question.Answered:
		outcome = "answered"
	case question.Unanswered:
		outcome = "pending"
	}
	m.asks.WithLabelValues(outcome).Observe(took.Seconds())
}

// Synced is told of one write to disk.
func (m *Metrics) Synced(took time.Duration, batches, bytes int) {
	m.sync.Observe(took.Seconds())
	m.batches.Observe(float64(batches))
	m.bytes.Add(float64(bytes))
}

// Landed is told of events that reached the disk.
func (m *Metrics) Landed(sessionID string, events []event.Event) {
	for _, e := range events {
		// Most events are no replies, and this runs between two fsyncs: those
		// that are not are told apart without being read.
		if e.Type != event.TypeSpliced && e.Type != event.TypeUserMessage || !bytes.Contains(e.Data, []byte(event.SourceReply)) {
			continue
		}
		if e.Type == event.TypeSpliced {
			m.accepted(sessionID, e.Data)
		} else {
			m.read(sessionID, e.Data)
		}
	}
}

func (m *Metrics) accepted(sessionID string, data []byte) {
	s, err := event.DecodeSpliced(data)
	if err != nil {
		return // the log's own checks speak of it
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, msg := range s.Inserted {
		if msg.Source.Kind != event.SourceReply {
			continue
		}
		if len(m.underWay) >= underWayMax {
			clear(m.underWay) // discarded ones are never taken out otherwise
		}
		m.underWay[reply{sessionID, msg.ID}] = time.Now()
	}
}

func (m *Metrics) read(sessionID string, data []byte) {
	msg, err := event.DecodeUserMessage(data)
	if err != nil || msg.Source.Kind != event.SourceReply {
		return
	}
	m.admitted.Inc()
	key := reply{sessionID, msg.ID}
	m.mu.Lock()
	since, ok := m.underWay[key]
	delete(m.underWay, key)
	m.mu.Unlock()
	if ok {
		m.admission.Observe(time.Since(since).Seconds())
	}
}
