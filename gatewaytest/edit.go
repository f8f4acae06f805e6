package gatewaytest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// FaultEdit sends the usual response with a value in it replaced: by null, by the text "12,5",
// of which the quotes are a part of the value, by nothing, by an orderId of the gateway's own, or by the whole result of another
// gateway. The pointer is a JSON pointer (RFC 6901) from the body, such as "/message" or
// "/result/7/maxWithdraw", or "" for the body. In the place of an index, "*" is every element,
// and another text is each element in which a member has it as its value, at any depth:
// "/result/DOGE/maxWithdraw". The value is sent as given, and need not be valid JSON; an empty
// one removes what is there. A member that is not there is added, unless what should have it is
// not there either. A refusal is not changed. The operation is carried out.
//
// A request may meet several of them, and then another fault: see [Server.InjectFault].
// FaultEdit panics unless the pointer is "" or begins with a slash.
func FaultEdit(pointer, value string) Fault {
	if !isPointer(pointer) {
		panic(fmt.Sprintf("gatewaytest: FaultEdit with pointer %q, want one like /result/fee", pointer))
	}
	path := tokens(pointer)
	return edit(named("edit", pointer+"="+value), func(body []byte) []byte { return replaced(body, path, value) })
}

// FaultOtherCase sends the usual response with the UUIDs in it in upper case, and those with a
// capital letter in lower case, as a gateway does that stores a UUID as a number. A refusal is
// not changed. The operation is carried out. It is met like [FaultEdit].
func FaultOtherCase() Fault {
	uuid := regexp.MustCompile(`[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}`)
	return edit("other-case", func(body []byte) []byte {
		return uuid.ReplaceAllFunc(body, func(id []byte) []byte {
			if lower := bytes.ToLower(id); !bytes.Equal(lower, id) {
				return lower
			}
			return bytes.ToUpper(id)
		})
	})
}

// edit returns a fault that changes the body of a success.
func edit(name string, change func([]byte) []byte) Fault {
	return Fault{name: name, alter: []func(*response){func(r *response) {
		if r.status <= 299 {
			r.edits = append(r.edits, change)
		}
	}}}
}

func isPointer(text string) bool { return text == "" || text[0] == '/' }

// tokens returns the names in a JSON pointer.
func tokens(pointer string) []string {
	all := strings.Split(pointer, "/")[1:] // none of ""
	for i, token := range all {
		all[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
	}
	return all
}

// replaced returns a JSON text with the values at a path replaced, or removed for "".
func replaced(text []byte, path []string, value string) []byte {
	if len(path) == 0 {
		return []byte(value)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	open, _ := decoder.Token()
	isObject := open == json.Delim('{')
	if !isObject && open != json.Delim('[') {
		return text
	}
	parts, found := []string{}, !isObject || path[0] == "*"
	_, notIndex := strconv.Atoi(path[0])
	removes := len(path) == 1 && value == ""
	for i := 0; decoder.More(); i++ {
		name, label := strconv.Itoa(i), ""
		if isObject {
			token, _ := decoder.Token()
			name, _ = token.(string)
			label = quote(name) + ":"
		}
		var part json.RawMessage
		if decoder.Decode(&part) != nil {
			return text // an earlier edit broke it
		}
		if path[0] == name || path[0] == "*" || !isObject && notIndex != nil && strings.Contains(string(part), ":"+quote(path[0])) {
			if found = true; removes {
				continue
			}
			part = replaced(part, path[1:], value)
		}
		parts = append(parts, label+string(part))
	}
	if !found && len(path) == 1 && !removes {
		parts = append(parts, quote(path[0])+":"+value)
	}
	if isObject {
		return []byte("{" + strings.Join(parts, ",") + "}")
	}
	return []byte("[" + strings.Join(parts, ",") + "]")
}

func quote(s string) string {
	quoted, _ := json.Marshal(s) // a text: cannot fail
	return string(quoted)
}
