package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
)

// A console that answers the statuses one after the other, and then the object.
func console(t *testing.T, keys *[]string, headers http.Header, statuses ...int) *Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		*keys = append(*keys, request.Header.Get("Idempotency-Key"))
		if len(*keys) > len(statuses) {
			answer.Write([]byte(`{"version": 1, "spec": {}}`))
			return
		}
		for name, values := range headers {
			answer.Header()[name] = values
		}
		answer.WriteHeader(statuses[len(*keys)-1])
		answer.Write([]byte(`{"detail": "Not now.", "request_id": "r", "errors": []}`))
	}))
	t.Cleanup(server.Close)
	return &Client{URL: server.URL, HTTP: server.Client()}
}

func TestWhatWasNotDecidedIsAskedAgainWithTheSameKey(t *testing.T) {
	var keys []string
	client := console(t, &keys, http.Header{"Retry-After": {"1"}}, 429, 503, 409)
	began := time.Now()
	if _, err := client.Create(context.Background(), "pools/a/b", Object{}); err != nil {
		t.Fatal(err)
	}
	if len(keys) != 4 || keys[0] == "" || keys[0] != keys[3] || time.Since(began) < 3*time.Second {
		t.Fatal(keys, time.Since(began))
	}
}

func TestAPauseMayBeATime(t *testing.T) {
	then := time.Now().Add(30 * time.Second).UTC().Format(http.TimeFormat)
	for text, least := range map[string]time.Duration{then: 20 * time.Second, "7": 7 * time.Second, "": 0, "-1": 0, "soon": 0} {
		found := retryAfter(&http.Response{Header: http.Header{"Retry-After": {text}}})
		if found < least || found > least+10*time.Second {
			t.Fatal(text, found)
		}
	}
}

func TestAConflictWithoutAPauseIsFinal(t *testing.T) {
	var keys []string
	client := console(t, &keys, nil, 409)
	if _, err := client.Create(context.Background(), "pools/a/b", Object{}); !isStatus(err, 409) || len(keys) != 1 {
		t.Fatal(err, keys)
	}
}

func TestA404OfAnotherServerIsNotAnObjectThatIsGone(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	client := &Client{URL: server.URL, HTTP: server.Client()}
	_, err := client.Get(context.Background(), "pools/a/b")
	if isStatus(err, 404) || err == nil || !strings.Contains(err.Error(), "is this the URL") {
		t.Fatal(err)
	}
}

func TestAnOlderConsoleIsNamedWhereItLacksAField(t *testing.T) {
	refusal := &Refusal{Status: 422, Title: "Invalid input"}
	text := `{"errors": [{"pointer": "/spec/balance", "code": "unknown_field", "detail": "There is no field balance."}]}`
	if err := json.Unmarshal([]byte(text), refusal); err != nil {
		t.Fatal(err)
	}
	var found diag.Diagnostics
	explain(&found, Kind{Fields: pool.Fields}, refusal)
	at := found[0].(diag.DiagnosticWithPath).Path().String()
	if at != "spec.balance" || !strings.Contains(found[0].Detail(), "older than the provider") {
		t.Fatal(at, found[0].Detail())
	}
}

func TestANameIsOneStepOfThePathWhateverItHolds(t *testing.T) {
	kind := Kind{Noun: "pools", Owned: true}
	if found := kind.path(row{Account: "acme", Name: "shop?dry_run=true/x"}); found != "pools/acme/shop%3Fdry_run=true%2Fx" {
		t.Fatal(found)
	}
}
