package main

import (
	"reflect"
	"testing"
)

var pool = Field{Type: "object", Fields: []Field{
	{Name: "balance", Type: "string", Default: "leastconn"},
	{Name: "key", Type: "string", Secret: true},
	{Name: "servers", Type: "object", Many: true, Key: "name", Fields: []Field{{Name: "name", Type: "string"}, {Name: "port", Type: "integer"}}},
}}

func parsed(t *testing.T, text string) Object {
	t.Helper()
	found, err := decodeJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return found.(Object)
}

func TestWhatNobodyChangedStaysAsItWasWritten(t *testing.T) {
	state := parsed(t, `{"key": "secret", "servers": [{"name": "b", "port": 2}, {"name": "a", "port": 1}]}`)
	was := parsed(t, `{"balance": "leastconn", "servers": [{"name": "a", "port": 1}, {"name": "b", "port": 2}]}`)
	if found := drifted(pool, state, was, was); !reflect.DeepEqual(found, state) {
		t.Fatalf("%v", found)
	}
}

func TestWhatSomebodyChangedIsTakenOverAtItsPlace(t *testing.T) {
	state := parsed(t, `{"key": "secret", "servers": [{"name": "b", "port": 2}, {"name": "a", "port": 1}]}`)
	was := parsed(t, `{"balance": "leastconn", "servers": [{"name": "a", "port": 1}, {"name": "b", "port": 2}]}`)
	is := parsed(t, `{"balance": "random", "servers": [{"name": "a", "port": 9}, {"name": "c", "port": 3}]}`)
	want := parsed(t, `{"key": "secret", "balance": "random", "servers": [{"name": "a", "port": 9}, {"name": "c", "port": 3}]}`)
	if found := drifted(pool, state, was, is); !reflect.DeepEqual(found, want) {
		t.Fatalf("%v", found)
	}
}

func TestWhatIsImportedHasNoDefaults(t *testing.T) {
	is := parsed(t, `{"balance": "leastconn", "key": null, "servers": []}`)
	if found := plainObject(pool, is); len(found) != 0 {
		t.Fatalf("%v", found)
	}
}

func TestAPointerLeadsToTheAttribute(t *testing.T) {
	if found := pathOf(pool.Fields, "/spec/servers/1/port").String(); found != "spec.servers[1].port" {
		t.Fatal(found)
	}
	if found := pathOf(pool.Fields, "/If-Match").String(); found != "" {
		t.Fatal(found)
	}
}
