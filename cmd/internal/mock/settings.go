package mock

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cryptogw/gateway/gatewaytest"
)

// Settings are how a mock responds, as JSON too. An empty member leaves what is set.
type Settings struct {
	Shapes         []string `json:"shapes,omitempty"`         // see [gatewaytest.Shapes]
	RepeatedOrders string   `json:"repeatedOrders,omitempty"` // see [gatewaytest.RepeatedOrders]
	RateLimit      string   `json:"rateLimit,omitempty"`      // such as "10/1s", or "off"
	Latency        string   `json:"latency,omitempty"`        // see [gatewaytest.ParseLatency]
}

// defaults returns the settings of a stand-in that has just started.
func defaults() Settings {
	s := Settings{RepeatedOrders: string(gatewaytest.RepeatAgain), RateLimit: noLimit, Latency: "0s"}
	for _, shape := range gatewaytest.Shapes() {
		if !slices.ContainsFunc(s.Shapes, ofTheType(shape.String())) {
			s.Shapes = append(s.Shapes, shape.String())
		}
	}
	return s
}

// ofTheType reports whether a shape is of the type of another, which it replaces.
func ofTheType(other string) func(string) bool {
	kind, _, _ := strings.Cut(other, "/")
	return func(shape string) bool { return strings.HasPrefix(shape, kind+"/") }
}

// with returns the settings after others were set.
func (s Settings) with(others Settings) Settings {
	s.Shapes = slices.Clone(s.Shapes)
	for _, shape := range others.Shapes {
		s.Shapes[slices.IndexFunc(s.Shapes, ofTheType(shape))] = shape
	}
	for _, m := range []struct {
		set *string
		to  string
	}{{&s.RepeatedOrders, others.RepeatedOrders}, {&s.RateLimit, others.RateLimit}, {&s.Latency, others.Latency}} {
		if m.to != "" {
			*m.set = m.to
		}
	}
	return s
}

// Check returns what is wrong with the settings, and what would be right.
func (s Settings) Check() error { return s.apply(nil) }

// apply sets a stand-in to the settings, unless it is nil, or returns what is wrong with
// them; then nothing is set.
func (s Settings) apply(server *gatewaytest.Server) error {
	var set []func()
	for _, name := range s.Shapes {
		shapes := gatewaytest.Shapes()
		i := slices.IndexFunc(shapes, func(shape gatewaytest.Shape) bool { return shape.String() == name })
		if i < 0 {
			return fmt.Errorf("there is no such shape, but %s", shapeNames())
		}
		set = append(set, func() { server.SetShape(shapes[i]) })
	}
	if s.RepeatedOrders != "" {
		kind := gatewaytest.RepeatedOrders(s.RepeatedOrders)
		if !slices.Contains(gatewaytest.AllRepeatedOrders(), kind) {
			return fmt.Errorf("a repeated order gets one of %s", joined(gatewaytest.AllRepeatedOrders()))
		}
		set = append(set, func() { server.SetRepeatedOrders(kind) })
	}
	if s.RateLimit != "" {
		requests, per, err := parseLimit(s.RateLimit)
		if err != nil {
			return err
		}
		set = append(set, func() { server.SetRateLimit(requests, per) })
	}
	if s.Latency != "" {
		latency, err := gatewaytest.ParseLatency(s.Latency)
		if err != nil {
			return err
		}
		set = append(set, func() { server.SetLatency(latency) })
	}
	if server != nil {
		for _, do := range set {
			do()
		}
	}
	return nil
}

func shapeNames() string {
	var names []string
	for _, shape := range gatewaytest.Shapes() {
		names = append(names, shape.String())
	}
	return strings.Join(names, ", ")
}

const noLimit = "off"

// parseLimit parses a limit such as "10/1s", or "off".
func parseLimit(text string) (requests int, per time.Duration, err error) {
	if text == noLimit {
		return 0, 0, nil
	}
	number, window, _ := strings.Cut(text, "/")
	requests, err = strconv.Atoi(number)
	per, wrong := time.ParseDuration(window)
	if err != nil || wrong != nil || requests < 1 || per <= 0 {
		return 0, 0, errors.New("write a limit like 10/1s, or off")
	}
	return requests, per, nil
}
