package strictjson

// IsOfPage reports whether a member has the name that a counter of a list mostly has, or a place in
// one: a list beside it can be a part of what there is.
func IsOfPage(name string) bool {
	switch name {
	case "total", "totalCount", "total_count", "count", "page", "pages", "totalPages", "total_pages",
		"limit", "offset", "perPage", "per_page", "pageSize", "page_size", "next", "hasMore", "has_more", "cursor":
		return true
	}
	return false
}
