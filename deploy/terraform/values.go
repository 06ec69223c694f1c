package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Object is an object of JSON; numbers are json.Number, so that none loses digits.
type Object = map[string]any

// encode makes an object of JSON of Terraform's value; what is null is left out.
func encode(fields []Field, value tftypes.Value) (Object, error) {
	if value.IsNull() {
		return nil, nil
	}
	parts := map[string]tftypes.Value{}
	if err := value.As(&parts); err != nil {
		return nil, err
	}
	found := Object{}
	for _, field := range fields {
		one, err := field.encode(parts[field.Name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", field.Name, err)
		}
		if one != nil {
			found[field.Name] = one
		}
	}
	return found, nil
}

func (field Field) encode(value tftypes.Value) (any, error) {
	if value.IsNull() {
		return nil, nil
	}
	if !value.IsKnown() {
		return nil, errors.New("it is not known yet")
	}
	if !field.Many {
		return field.encodeOne(value)
	}
	var entries []tftypes.Value
	if err := value.As(&entries); err != nil {
		return nil, err
	}
	found := make([]any, 0, len(entries))
	for _, entry := range entries {
		one, err := field.encodeOne(entry)
		if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	return found, nil
}

func (field Field) encodeOne(value tftypes.Value) (any, error) {
	switch field.Type {
	case "object":
		return encode(field.Fields, value)
	case "map":
		return encodeMap(value)
	case "integer", "number":
		number := new(big.Float)
		err := value.As(&number)
		return json.Number(number.Text('f', -1)), err
	case "boolean":
		var truth bool
		err := value.As(&truth)
		return truth, err
	}
	var text string
	if err := value.As(&text); err != nil {
		return nil, err
	}
	if field.Type == "json" || field.Type == "any" && (text == "true" || text == "false") {
		return decodeJSON([]byte(text))
	}
	return text, nil
}

func encodeMap(value tftypes.Value) (any, error) {
	entries := map[string]tftypes.Value{}
	if err := value.As(&entries); err != nil {
		return nil, err
	}
	found := Object{}
	for key, entry := range entries {
		if entry.IsNull() { // an empty text would mean something: the password that is stored
			found[key] = nil
			continue
		}
		var text string
		if err := entry.As(&text); err != nil {
			return nil, err
		}
		found[key] = text
	}
	return found, nil
}

// decode makes Terraform's value of an object of JSON; what is left out is null.
func decode(fields []Field, object Object) (tftypes.Value, error) {
	kind := objectType(fields)
	if object == nil {
		return tftypes.NewValue(kind, nil), nil
	}
	parts := map[string]tftypes.Value{}
	for _, field := range fields {
		part, err := field.decode(object[field.Name])
		if err != nil {
			return tftypes.Value{}, fmt.Errorf("%s: %w", field.Name, err)
		}
		parts[field.Name] = part
	}
	return tftypes.NewValue(kind, parts), nil
}

func (field Field) decode(value any) (tftypes.Value, error) {
	if value == nil {
		return tftypes.NewValue(field.terraformType(), nil), nil
	}
	if !field.Many {
		return field.decodeOne(value)
	}
	entries, fits := value.([]any)
	if !fits {
		return tftypes.Value{}, fmt.Errorf("a list was expected, not %T", value)
	}
	found := make([]tftypes.Value, 0, len(entries))
	for _, entry := range entries {
		one, err := field.decodeOne(entry)
		if err != nil {
			return tftypes.Value{}, err
		}
		found = append(found, one)
	}
	return tftypes.NewValue(field.terraformType(), found), nil
}

func (field Field) decodeOne(value any) (tftypes.Value, error) {
	_, isText := value.(string)
	if field.Type == "json" || field.Type == "any" && !isText {
		text, err := json.Marshal(value)
		return tftypes.NewValue(tftypes.String, string(text)), err
	}
	switch held := value.(type) {
	case json.Number:
		number, _, err := big.ParseFloat(held.String(), 10, 512, big.ToNearestEven) // as Terraform reads its own
		return tftypes.NewValue(tftypes.Number, number), err
	case Object:
		if field.Type == "object" {
			return decode(field.Fields, held)
		}
		parts := map[string]tftypes.Value{}
		for key, entry := range held {
			parts[key] = tftypes.NewValue(tftypes.String, entry)
		}
		return tftypes.NewValue(field.oneType(), parts), nil
	}
	if err := tftypes.ValidateValue(field.oneType(), value); err != nil {
		return tftypes.Value{}, err
	}
	return tftypes.NewValue(field.oneType(), value), nil
}

// drifted is the state after a look at the console: what is stored (`is`) as it was after our last write (`was`) stays
// as it was written, in its own spelling and order, with its secrets and without defaults; only what changed since is
// taken over. A field that the console did not have then, and that has its default now, is no change.
func drifted(field Field, state, was, is any) any {
	if reflect.DeepEqual(was, is) {
		return state
	}
	if written, stored, present, fit := three[Object](state, was, is); fit {
		return driftedObject(field, written, stored, present)
	}
	if written, stored, present, fit := three[[]any](state, was, is); fit && len(field.Key) > 0 {
		return driftedEntries(field, written, stored, present)
	}
	return plain(field, is)
}

func driftedObject(field Field, state, was, is Object) Object {
	found := Object{}
	for name := range union(state, is) {
		below, _ := fieldAt(field.Fields, name)
		if _, known := was[name]; !known && state[name] == nil && isUnsaid(below, is[name]) {
			continue
		}
		if value := drifted(below, state[name], was[name], is[name]); value != nil {
			found[name] = value
		}
	}
	return found
}

// driftedEntries keeps the order in which entries were written; what was added since stands at the end.
func driftedEntries(field Field, state, was, is []any) []any {
	stored, present := byKey(field, was), byKey(field, is)
	found := []any{}
	for _, entry := range state {
		key := keyOf(field, entry)
		if now, there := present[key]; there {
			found = append(found, drifted(Field{Type: "object", Fields: field.Fields}, entry, stored[key], now))
			delete(present, key)
		}
	}
	for _, entry := range is {
		if _, added := present[keyOf(field, entry)]; added {
			found = append(found, plain(field, entry))
		}
	}
	return found
}

func byKey(field Field, entries []any) map[string]any {
	found := map[string]any{}
	for _, entry := range entries {
		found[keyOf(field, entry)] = entry
	}
	return found
}

func keyOf(field Field, entry any) string {
	object, _ := entry.(Object)
	parts := make([]any, len(field.Key))
	for index, name := range field.Key {
		parts[index] = object[name]
	}
	return fmt.Sprintf("%q", parts)
}

func three[T any](first, second, third any) (T, T, T, bool) {
	one, fits := first.(T)
	two, fitsToo := second.(T)
	three, fitsAll := third.(T)
	return one, two, three, fits && fitsToo && fitsAll
}

func union(objects ...Object) map[string]bool {
	found := map[string]bool{}
	for _, object := range objects {
		for name := range object {
			found[name] = true
		}
	}
	return found
}

// plain is what somebody would have written: without what is empty and what is so anyway.
func plain(field Field, value any) any {
	switch held := value.(type) {
	case []any:
		found := make([]any, len(held))
		for index, entry := range held {
			found[index] = plain(field, entry)
		}
		return found
	case Object:
		if field.Type == "object" {
			return plainObject(field, held)
		}
	}
	return value
}

func plainObject(field Field, value Object) Object {
	found := Object{}
	for _, below := range field.Fields {
		if one := value[below.Name]; !isUnsaid(below, one) {
			found[below.Name] = plain(below, one)
		}
	}
	return found
}

// isUnsaid is true of what is empty, and of what is so anyway.
func isUnsaid(field Field, value any) bool {
	switch held := value.(type) {
	case nil:
		return true
	case []any:
		if len(held) == 0 {
			return true
		}
	case Object:
		if len(held) == 0 {
			return true
		}
	}
	return reflect.DeepEqual(value, field.Default)
}

// pathOf is where the API's pointer leads in a resource: `/spec/backends/0/region`.
func pathOf(fields []Field, pointer string) path.Path {
	words := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	if len(words) == 1 && (words[0] == "name" || words[0] == "account") {
		return path.Root(words[0])
	}
	if words[0] != "spec" {
		return path.Empty()
	}
	found := path.Root("spec")
	for index := 1; index < len(words); index++ {
		field, known := fieldAt(fields, words[index])
		if !known {
			break
		}
		found, fields = found.AtName(field.Name), field.Fields
		if !field.Many || field.Set || index+1 == len(words) {
			continue
		}
		if entry, err := strconv.Atoi(words[index+1]); err == nil {
			found = found.AtListIndex(entry)
			index++
		}
	}
	return found
}

func fieldAt(fields []Field, name string) (Field, bool) {
	for _, field := range fields {
		if field.Name == name {
			return field, true
		}
	}
	return Field{}, false
}

func decodeJSON(text []byte) (any, error) {
	var found any
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	err := decoder.Decode(&found)
	return found, err
}
