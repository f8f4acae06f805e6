package gateway

import "encoding/json"

// The types below have a time.Duration, for which encoding/json/v2 has no form, or headers, which it refuses if they
// are not UTF-8. Both packages encode them by the rules of encoding/json: a duration is a number of nanoseconds.

// MarshalJSON writes RetryAfter in nanoseconds, and a Header in UTF-8.
func (e *APIError) MarshalJSON() ([]byte, error) {
	type plain APIError
	return json.Marshal((*plain)(e))
}

// UnmarshalJSON reads what MarshalJSON has written.
func (e *APIError) UnmarshalJSON(text []byte) error {
	type plain APIError
	return json.Unmarshal(text, (*plain)(e))
}

// MarshalJSON writes Duration in nanoseconds, and a Header in UTF-8. It hides the other fields of a struct around it.
func (r *Response) MarshalJSON() ([]byte, error) {
	type plain Response
	return json.Marshal((*plain)(r))
}

// UnmarshalJSON reads what MarshalJSON has written.
func (r *Response) UnmarshalJSON(text []byte) error {
	type plain Response
	return json.Unmarshal(text, (*plain)(r))
}

// MarshalJSON writes Duration in nanoseconds, and no errors. It hides the other fields of a struct around it.
func (c *Call) MarshalJSON() ([]byte, error) {
	type plain Call
	return json.Marshal((*plain)(c))
}

// UnmarshalJSON reads what MarshalJSON has written.
func (c *Call) UnmarshalJSON(text []byte) error {
	type plain Call
	return json.Unmarshal(text, (*plain)(c))
}

// MarshalJSON writes Wait and Duration in nanoseconds, and no error. It hides the other fields of a struct around it.
func (a *Attempt) MarshalJSON() ([]byte, error) {
	type plain Attempt
	return json.Marshal((*plain)(a))
}

// UnmarshalJSON reads what MarshalJSON has written.
func (a *Attempt) UnmarshalJSON(text []byte) error {
	type plain Attempt
	return json.Unmarshal(text, (*plain)(a))
}

// MarshalJSON writes Margin in nanoseconds. It hides the other fields of a struct around it.
func (f *Finding) MarshalJSON() ([]byte, error) {
	type plain Finding
	return json.Marshal((*plain)(f))
}

// UnmarshalJSON reads what MarshalJSON has written.
func (f *Finding) UnmarshalJSON(text []byte) error {
	type plain Finding
	return json.Unmarshal(text, (*plain)(f))
}

// MarshalJSON writes the durations in nanoseconds. It hides the other fields of a struct around it.
func (p *RetryPolicy) MarshalJSON() ([]byte, error) {
	type plain RetryPolicy
	return json.Marshal((*plain)(p))
}

// UnmarshalJSON reads what MarshalJSON has written.
func (p *RetryPolicy) UnmarshalJSON(text []byte) error {
	type plain RetryPolicy
	return json.Unmarshal(text, (*plain)(p))
}

// MarshalJSON writes the intervals in nanoseconds, and no Changed. It hides the other fields of a struct around it.
func (o *WaitOptions) MarshalJSON() ([]byte, error) {
	type plain WaitOptions
	return json.Marshal((*plain)(o))
}

// UnmarshalJSON reads what MarshalJSON has written.
func (o *WaitOptions) UnmarshalJSON(text []byte) error {
	type plain WaitOptions
	return json.Unmarshal(text, (*plain)(o))
}
