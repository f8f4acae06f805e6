package gatewaytest

import (
	"fmt"
	"net/http"
	"strings"
)

// An ErrorForm is the body of an error in another form than the documented one, such as
// the body that a web framework writes before the service's own code runs. It is JSON in
// which STATUS stands for the status, TEXT for its name as a string, and MESSAGE for the
// message as a string. The constants are common forms; any other text is one too.
type ErrorForm string

// Common bodies of errors.
const (
	// ErrorNest is the error body of NestJS.
	ErrorNest ErrorForm = `{"statusCode":STATUS,"message":MESSAGE,"error":TEXT}`
	// ErrorNestList is the error body of the validation of NestJS.
	ErrorNestList ErrorForm = `{"statusCode":STATUS,"message":[MESSAGE,"amount must be positive"],"error":TEXT}`
	// ErrorProblem is the error body of RFC 9457.
	ErrorProblem ErrorForm = `{"type":"about:blank","title":TEXT,"status":STATUS,"detail":MESSAGE}`
	// ErrorFastAPI is the error body of the validation of FastAPI.
	ErrorFastAPI ErrorForm = `{"detail":[{"type":"value_error","loc":["body","coinSymbol"],"msg":MESSAGE}]}`
	// ErrorRails is the error body of Rails.
	ErrorRails ErrorForm = `{"status":STATUS,"error":MESSAGE}`
	// ErrorLaravel is the error body of the validation of Laravel.
	ErrorLaravel ErrorForm = `{"message":MESSAGE,"errors":{"coinSymbol":[MESSAGE]}}`
	// ErrorNoResult is the documented envelope without a result.
	ErrorNoResult ErrorForm = `{"message":MESSAGE,"meta":{}}`
	// ErrorNull is the documented envelope with the result null.
	ErrorNull ErrorForm = `{"message":MESSAGE,"result":null,"meta":{}}`
)

// ErrorForms returns the common bodies of errors.
func ErrorForms() []ErrorForm {
	return []ErrorForm{ErrorNest, ErrorNestList, ErrorProblem, ErrorFastAPI, ErrorRails, ErrorLaravel, ErrorNoResult, ErrorNull}
}

// FaultRefuseAs responds with a status and an error in a form, such as [ErrorNest]. With a
// status from 200 to 299 it is a refusal that looks like a success. The operation is not
// carried out. FaultRefuseAs panics unless the status is between 200 and 999.
func FaultRefuseAs(form ErrorForm, status int, message string) Fault {
	checkStatus("FaultRefuseAs", status, 200, 999)
	mediaType := jsonType
	if form == ErrorProblem {
		mediaType = "application/problem+json"
	}
	body := strings.NewReplacer("STATUS", fmt.Sprint(status), "TEXT", quote(http.StatusText(status)), "MESSAGE", quote(message)).Replace(string(form))
	return fixed("refuse-as", status, mediaType, body)
}
