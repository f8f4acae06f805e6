package probe

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cryptogw/gateway/internal/documented/fields"
)

// A place is the JSON pointer to a value, and the pattern of the pointers to the
// same member of all records of the result.
type place struct{ pointer, all string }

func (p place) member(name string) place {
	token := "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	return place{p.pointer + token, p.all + token}
}

// record returns the place of a record among others.
func (p place) record(name string) place {
	return place{p.member(name).pointer, p.all + "/*"}
}

// An item is one of the records in a result.
type item struct {
	at    place
	value any
}

// recognise returns the shape of a result and the records in it, which the table
// describes.
func recognise(result any, at place, of *fields.Table) (Shape, []item) {
	switch result := result.(type) {
	case []any:
		return shapeOf(shapeArray, len(result), elements(result, at), of)
	case map[string]any:
		return recogniseObject(result, at, of)
	case string, json.Number:
		if !of.Documented {
			return shapeOf(shapeAmount, 1, []item{{at, result}}, of)
		}
	}
	return Shape{Kind: shapeUnknown, Members: membersOf(item{at, result})}, nil
}

func recogniseObject(result map[string]any, at place, of *fields.Table) (Shape, []item) {
	if describes(of, result) {
		return shapeOf(shapeRecord, 1, []item{{at, result}}, of)
	}
	unknown := Shape{Kind: shapeUnknown, Members: membersOf(item{at, result})}
	if of.Documented {
		return unknown, nil
	}
	if usd, eur := byFiat(result, "usd"), byFiat(result, "eur"); usd != nil && eur != nil {
		rates := append(members(usd, at), members(eur, at)...)
		return Shape{Kind: shapeByCurrency, Count: len(usd), Members: membersOf(rates...)}, []item{{at, result}}
	}
	for _, value := range result {
		if inner, isObject := value.(map[string]any); isObject && !describes(of, inner) || fields.KindOf(value) == "array" {
			return unknown, nil
		}
	}
	return shapeOf(shapeBySymbol, len(result), members(result, at), of)
}

// shapeOf returns a shape, with its members if they are not documented.
func shapeOf(kind string, count int, items []item, of *fields.Table) (Shape, []item) {
	shape := Shape{Kind: kind, Count: count, Members: map[string]string{}}
	if !of.Documented {
		shape.Members = membersOf(items...)
	}
	return shape, items
}

// describes reports whether an object is a record of the table: whether one of the
// table's names has a value that is neither an object nor an array.
func describes(t *fields.Table, object map[string]any) bool {
	for name, value := range object {
		if _, known := t.Field(name); known && fields.KindOf(value) != "object" && fields.KindOf(value) != "array" {
			return true
		}
	}
	return false
}

// byFiat returns the rates in a fiat currency, or nil.
func byFiat(result map[string]any, code string) map[string]any {
	for _, name := range []string{code, strings.ToUpper(code)} {
		if rates, ok := result[name].(map[string]any); ok {
			return rates
		}
	}
	return nil
}

func elements(array []any, at place) []item {
	items := []item{}
	for i, value := range array {
		items = append(items, item{at.record(strconv.Itoa(i)), value})
	}
	return items
}

func members(object map[string]any, at place) []item {
	items := []item{}
	for _, name := range names(object) {
		items = append(items, item{at.record(name), object[name]})
	}
	return items
}

// names returns the names of the members, sorted.
func names(object map[string]any) []string { return slices.Sorted(maps.Keys(object)) }

// maxMembers is the largest number of members in a shape.
const maxMembers = 50

// membersOf returns the JSON types of the members of records, joined if there are
// several. A value that is not a record is a member without a name.
func membersOf(items ...item) map[string]string {
	kinds := map[string]map[string]bool{}
	for _, item := range items {
		object, ok := item.value.(map[string]any)
		if !ok {
			object = map[string]any{"": item.value}
		}
		for _, name := range names(object) {
			if kinds[name] == nil && len(kinds) < maxMembers {
				kinds[name] = map[string]bool{}
			}
			if kinds[name] != nil {
				kinds[name][strings.Replace(fields.KindOf(object[name]), "integer", "number", 1)] = true
			}
		}
	}
	joined := map[string]string{}
	for name, of := range kinds {
		joined[name] = strings.Join(slices.Sorted(maps.Keys(of)), " or ")
	}
	return joined
}
