package strictjson

import "strconv"

// What a member beside a list tells of it, by its name.
type counter int8

const (
	noCounter counter = iota
	records           // that there are
	page              // from 1, or how many there are
	size              // of a page
	offset            // of the first record
	next              // a following page
)

func counterOf(name string) counter {
	switch name {
	case "total", "totalCount", "total_count", "count":
		return records
	case "page", "pages", "totalPages", "total_pages":
		return page
	case "limit", "perPage", "per_page", "pageSize", "page_size":
		return size
	case "offset":
		return offset
	case "next", "cursor", "hasMore", "has_more":
		return next
	default:
		return noCounter
	}
}

// IsOfPage reports whether a member has a name that tells of a page: a list beside it can be a part of
// what there is.
func IsOfPage(name string) bool { return counterOf(name) != noCounter }

// More returns the first member in n, or n, that tells of more than the records that came. Arrays are
// passed over: they are lists of their own.
func (n Node) More(came int) Node {
	for at := n.at; n.doc != nil && at < n.value().next; at++ {
		inner := Node{n.doc, at}
		if inner.Kind() == '[' {
			at = inner.value().next - 1
		} else if inner.isMore(came) {
			return inner
		}
	}
	return Node{}
}

func (n Node) isMore(came int) bool {
	name := n.Name()
	if n.at == 0 {
		name = n.doc.place.LastToken()
	}
	number, _ := strconv.Atoi(n.Scalar()) // or 0
	switch counterOf(name) {
	case records:
		return number > came
	case page:
		return number > 1
	case size:
		return number > 0 && number == came // the page is full
	case offset:
		return number > 0
	case next:
		return n.Kind() == 't' || n.Scalar() != ""
	default:
		return false
	}
}
