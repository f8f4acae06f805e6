package gatewaytest

import (
	"fmt"
	"net/http"
	"strings"
)

// An ErrorForm is the body of an error in a form other than the documented one, such as the form of a web framework. It
// is JSON in which STATUS stands for the status, TEXT for its name as a string, and MESSAGE for the message as a string.
// The constants are common forms. Any other text is a form, too.
type ErrorForm string

// Common bodies of errors.
const (
	ErrorNest     ErrorForm = `{"statusCode":STATUS,"message":MESSAGE,"error":TEXT}`
	ErrorNestList ErrorForm = `{"statusCode":STATUS,"message":[MESSAGE,"amount must be positive"],"error":TEXT}`
	ErrorProblem  ErrorForm = `{"type":"about:blank","title":TEXT,"status":STATUS,"detail":MESSAGE}` // RFC 9457
	ErrorFastAPI  ErrorForm = `{"detail":[{"type":"value_error","loc":["body","coinSymbol"],"msg":MESSAGE}]}`
	ErrorRails    ErrorForm = `{"status":STATUS,"error":MESSAGE}`
	ErrorLaravel  ErrorForm = `{"message":MESSAGE,"errors":{"coinSymbol":[MESSAGE]}}`
	ErrorNoResult ErrorForm = `{"message":MESSAGE,"meta":{}}`
	ErrorNull     ErrorForm = `{"message":MESSAGE,"result":null,"meta":{}}`
)

// ErrorForms returns the common bodies of errors.
func ErrorForms() []ErrorForm {
	return []ErrorForm{ErrorNest, ErrorNestList, ErrorProblem, ErrorFastAPI, ErrorRails, ErrorLaravel, ErrorNoResult, ErrorNull}
}

// FaultRefuseAs responds with a status and an error in a form. The operation is not carried out. FaultRefuseAs panics
// unless the status is between 200 and 999.
func FaultRefuseAs(form ErrorForm, status int, message string) Fault {
	checkStatus("FaultRefuseAs", status, 200, 999)
	values := strings.NewReplacer("STATUS", fmt.Sprint(status), "TEXT", quote(http.StatusText(status)), "MESSAGE", quote(message))
	return fixed("refuse-as", status, jsonType, values.Replace(string(form)))
}
