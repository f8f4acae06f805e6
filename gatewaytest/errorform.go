package gatewaytest

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// An ErrorForm is the body of an error that is not the documented one, such as a web framework
// writes before any code of a service runs. It is JSON in which STATUS stands for the status,
// TEXT for its name as a string, and MESSAGE for the message as a string. Any text is a form;
// the constants are common ones.
type ErrorForm string

// Common bodies of errors.
const (
	ErrorNest     ErrorForm = `{"statusCode":STATUS,"message":MESSAGE,"error":TEXT}`                             // of NestJS
	ErrorNestList ErrorForm = `{"statusCode":STATUS,"message":[MESSAGE,"amount must be positive"],"error":TEXT}` // of its validation
	ErrorProblem  ErrorForm = `{"type":"about:blank","title":TEXT,"status":STATUS,"detail":MESSAGE}`             // of RFC 9457
	ErrorFastAPI  ErrorForm = `{"detail":[{"type":"value_error","loc":["body","coinSymbol"],"msg":MESSAGE}]}`    // of FastAPI
	ErrorRails    ErrorForm = `{"status":STATUS,"error":MESSAGE}`                                                // of Rails
	ErrorLaravel  ErrorForm = `{"message":MESSAGE,"errors":{"coinSymbol":[MESSAGE]}}`                            // of Laravel
	ErrorNoResult ErrorForm = `{"message":MESSAGE,"meta":{}}`                                                    // the envelope without result
	ErrorNull     ErrorForm = `{"message":MESSAGE,"result":null,"meta":{}}`                                      // the envelope with null
)

// ErrorForms returns the common bodies of errors.
func ErrorForms() (all []ErrorForm) {
	for _, f := range errorForms() {
		all = append(all, f.form)
	}
	return all
}

// A namedForm is an error form with its name in the names of faults.
type namedForm struct {
	name string
	form ErrorForm
}

func errorForms() []namedForm {
	return []namedForm{
		{"nest-list", ErrorNestList},
		{"nest", ErrorNest},
		{"problem", ErrorProblem},
		{"fastapi", ErrorFastAPI},
		{"rails", ErrorRails},
		{"laravel", ErrorLaravel},
		{"no-result", ErrorNoResult},
		{"null", ErrorNull},
	}
}

// FaultRefuseAs responds with a status and an error in a form, such as [ErrorNest]. With a
// status from 200 to 299 it is a refusal that looks like a success. The operation is not
// carried out. FaultRefuseAs panics unless the status is between 200 and 999.
func FaultRefuseAs(form ErrorForm, status int, message string) Fault {
	checkStatus("FaultRefuseAs", status, 200, 999)
	name, mediaType := "other", jsonType
	for _, f := range errorForms() {
		if f.form == form {
			name = f.name
		}
	}
	if form == ErrorProblem {
		mediaType = "application/problem+json"
	}
	body := strings.NewReplacer("STATUS", fmt.Sprint(status), "TEXT", quote(http.StatusText(status)), "MESSAGE", quote(message)).Replace(string(form))
	return Fault{name: named("refuse-"+name, status), respond: func(x responder, _ response) {
		x.writeHeader(status, mediaType)
		_, _ = io.WriteString(x.w, body)
	}}
}
