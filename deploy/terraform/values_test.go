package main

import (
	"reflect"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

var pool = Field{Type: "object", Fields: []Field{
	{Name: "balance", Type: "string", Default: "leastconn"},
	{Name: "key", Type: "string", Secret: true},
	{Name: "servers", Type: "object", Many: true, Key: []string{"name"}, Fields: []Field{{Name: "name", Type: "string"}, {Name: "port", Type: "integer"}}},
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

func TestEntriesAreToldApartByAllFieldsOfTheirKey(t *testing.T) {
	routes := Field{Type: "object", Fields: []Field{{Name: "routes", Type: "object", Many: true, Key: []string{"protocol", "alpn"}, Fields: []Field{
		{Name: "protocol", Type: "string"}, {Name: "alpn", Type: "string"}, {Name: "pool", Type: "string"},
	}}}}
	state := parsed(t, `{"routes": [{"alpn": "h2", "pool": "a"}, {"alpn": "mqtt", "pool": "b"}]}`)
	is := parsed(t, `{"routes": [{"alpn": "h2", "pool": "a"}, {"alpn": "mqtt", "pool": "c"}]}`)
	if found := drifted(routes, state, state, is); !reflect.DeepEqual(found, is) {
		t.Fatalf("%v", found)
	}
}

func TestAFieldThatANewerConsoleHasIsNoDrift(t *testing.T) {
	state := parsed(t, `{"servers": [{"name": "a", "port": 1}]}`)
	was := parsed(t, `{"servers": [{"name": "a", "port": 1}]}`)
	is := parsed(t, `{"balance": "leastconn", "key": null, "servers": [{"name": "a", "port": 1}]}`)
	if found := drifted(pool, state, was, is); !reflect.DeepEqual(found, state) {
		t.Fatalf("%v", found)
	}
	is["balance"] = "random"
	if found := drifted(pool, state, was, is); reflect.DeepEqual(found, state) {
		t.Fatal("what somebody set is no default")
	}
}

func TestWhatIsImportedHasNoDefaults(t *testing.T) {
	is := parsed(t, `{"balance": "leastconn", "key": null, "servers": []}`)
	if found := plainObject(pool, is); len(found) != 0 {
		t.Fatalf("%v", found)
	}
}

func TestAnEntryWithoutAValueIsNoEmptyText(t *testing.T) {
	users := tftypes.Map{ElementType: tftypes.String}
	found, err := encodeMap(tftypes.NewValue(users, map[string]tftypes.Value{"alice": tftypes.NewValue(tftypes.String, nil)}))
	if err != nil || !reflect.DeepEqual(found, Object{"alice": nil}) {
		t.Fatalf("%v %v", found, err)
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
