package invariant

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"
	"unsafe"
)

// Shows returns where something that prints, encodes, logs or dumps v shows a key, or "".
func Shows(v any, key string) string {
	texts := map[string]string{"a dump": Dump(v)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%#q", "%x", "%X", "% x", "%d"} {
		texts[verb] = fmt.Sprintf(verb, v)
	}
	var text, encoded bytes.Buffer
	slog.New(slog.NewTextHandler(&text, nil)).Info("m", "v", v)
	slog.New(slog.NewJSONHandler(&encoded, nil)).Info("m", "v", v)
	texts["slog as text"], texts["slog as JSON"] = text.String(), encoded.String()
	if out, err := json.Marshal(v); err == nil {
		texts["JSON"] = string(out)
	}
	spellings := []string{key, fmt.Sprintf("%x", key), fmt.Sprintf("%X", key), fmt.Sprintf("% x", key), fmt.Sprint([]byte(key))}
	for how, text := range texts {
		for _, spelled := range spellings {
			if at := strings.Index(text, spelled); at >= 0 {
				return fmt.Sprintf("%s of %T: …%.80q", how, v, text[max(at-40, 0):])
			}
		}
	}
	return ""
}

// A dump collects the texts of [Dump].
type dump struct {
	out  strings.Builder
	seen map[visit]bool
}

type visit struct {
	at   unsafe.Pointer
	kind reflect.Type
}

// Dump is every text that can be reached from a value by reflection, through pointers, maps and
// unexported fields, as a debugger or a dumping library would write it.
func Dump(v any) string {
	d := &dump{seen: map[visit]bool{}}
	d.walk(reflect.ValueOf(v))
	return d.out.String()
}

func (d *dump) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		fmt.Fprintf(&d.out, "%s\n", v.String())
	case reflect.Pointer:
		isLocation := v.Type() == reflect.TypeFor[*time.Location]() // another goroutine may set time.Local at its first use
		if !v.IsNil() && !isLocation && d.first(v) {
			d.walk(v.Elem())
		}
	case reflect.Interface:
		if !v.IsNil() {
			d.walk(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			d.walk(v.Field(i))
		}
	case reflect.Map:
		if v.IsNil() || !d.first(v) {
			return
		}
		for each := v.MapRange(); each.Next(); {
			d.walk(each.Key())
			d.walk(each.Value())
		}
	case reflect.Slice, reflect.Array:
		d.elements(v)
	}
}

// elements walks a slice, and beyond its length, where a buffer still holds
// what it held.
func (d *dump) elements(v reflect.Value) {
	if v.Kind() == reflect.Slice {
		if v.IsNil() || !d.first(v) {
			return
		}
		v = v.Slice(0, v.Cap())
	}
	if v.Type().Elem().Kind() == reflect.Uint8 {
		d.bytes(v)
		return
	}
	for i := range v.Len() {
		d.walk(v.Index(i))
	}
}

func (d *dump) bytes(v reflect.Value) {
	defer d.out.WriteByte('\n')
	if v.Kind() == reflect.Slice {
		d.out.Write(v.Bytes())
		return
	}
	for i := range v.Len() {
		d.out.WriteByte(byte(v.Index(i).Uint()))
	}
}

func (d *dump) first(v reflect.Value) bool {
	at := visit{v.UnsafePointer(), v.Type()}
	if d.seen[at] {
		return false
	}
	d.seen[at] = true
	return true
}
