package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	checkTries      = 4
	mostTries       = 7 // half a minute of pauses, in which a console starts again
	longestPause    = time.Minute
	requestPatience = 90 * time.Second // longer than the API waits until a change is live
	checkPatience   = 2 * time.Minute  // a plan waits no longer for a dry run; a rate limit lasts a minute
	largestAnswer   = 64 << 20
)

// Client speaks to the console's API.
type Client struct {
	URL, Token, Manager, Reason, Agent string
	WaitS                              int64
	HTTP                               *http.Client
	Planned                            *Planned // nil where plans are not checked
}

// Stored is an object as the console has it, and what the console said beside it.
type Stored struct {
	Version int64  `json:"version"`
	Spec    Object `json:"spec"`
	Notes   []string
}

// Refusal is an answer of the API that is not what was asked for.
type Refusal struct {
	Status    int    `json:"status"`
	Title     string `json:"title"`
	Detail    string `json:"detail"`
	RequestID string `json:"request_id"`
	Errors    []struct {
		Pointer string `json:"pointer"`
		Code    string `json:"code"`
		Detail  string `json:"detail"`
	} `json:"errors"`
}

func (refusal *Refusal) Error() string {
	return fmt.Sprintf("%s (status %d, request %s)", refusal.Detail, refusal.Status, refusal.RequestID)
}

// isStatus says whether the error is an answer with this status.
func isStatus(err error, status int) bool {
	var refusal *Refusal
	return errors.As(err, &refusal) && refusal.Status == status
}

// Get reads an object.
func (client *Client) Get(ctx context.Context, path string) (Stored, error) {
	return client.send(ctx, http.MethodGet, path, nil, nil)
}

// Create stores an object that is not there yet.
func (client *Client) Create(ctx context.Context, path string, spec Object) (Stored, error) {
	return client.put(ctx, path, spec, http.Header{"If-None-Match": {"*"}})
}

// Replace stores an object in the place of that version.
func (client *Client) Replace(ctx context.Context, path string, version int64, spec Object) (Stored, error) {
	return client.put(ctx, path, spec, http.Header{"If-Match": {tag(version)}})
}

// Delete removes that version of an object.
func (client *Client) Delete(ctx context.Context, path string, version int64) (Stored, error) {
	return client.send(ctx, http.MethodDelete, path, nil, http.Header{"If-Match": {tag(version)}})
}

func (client *Client) put(ctx context.Context, path string, spec Object, condition http.Header) (Stored, error) {
	body, err := json.Marshal(Object{"spec": spec})
	if err != nil {
		return Stored{}, err
	}
	condition.Set("Content-Type", "application/json")
	return client.send(ctx, http.MethodPut, path, body, condition)
}

func tag(version int64) string {
	return fmt.Sprintf(`"rev-%d"`, version)
}

// send repeats what was not decided; a write has a key, so that it happens once however often it is sent.
func (client *Client) send(ctx context.Context, method, path string, body []byte, headers http.Header) (Stored, error) {
	address := strings.TrimSuffix(client.URL, "/") + "/api/v1/" + path
	if headers == nil {
		headers = http.Header{}
	}
	if method != http.MethodGet {
		address += client.options()
		headers.Set("Idempotency-Key", rand.Text())
	}
	return client.repeated(ctx, method, address, body, headers, mostTries)
}

func (client *Client) repeated(ctx context.Context, method, address string, body []byte, headers http.Header, tries int) (Stored, error) {
	client.sign(headers, method)
	for try := 1; ; try++ {
		answer, pause, err := client.once(ctx, method, address, body, headers)
		if pause == 0 || try == tries {
			return answer, err
		}
		if pause < 0 {
			pause = time.Duration(1<<try) * 250 * time.Millisecond
		}
		select {
		case <-ctx.Done():
			return answer, err
		case <-time.After(min(pause, longestPause)):
		}
	}
}

func (client *Client) options() string {
	query := url.Values{}
	if client.Manager != "" {
		query.Set("manager", client.Manager)
	}
	if client.WaitS > 0 {
		query.Set("wait", strconv.FormatInt(client.WaitS, 10))
	}
	if len(query) == 0 {
		return ""
	}
	return "?" + query.Encode()
}

func (client *Client) sign(headers http.Header, method string) {
	headers.Set("Authorization", "Bearer "+client.Token)
	headers.Set("Accept", "application/json")
	headers.Set("User-Agent", client.Agent)
	if method == http.MethodGet {
		return
	}
	if client.Reason != "" {
		headers.Set("X-Change-Reason", client.Reason)
	}
}

// once sends the request; a pause says that it is worth another try, a negative one that nobody said when.
func (client *Client) once(ctx context.Context, method, address string, body []byte, headers http.Header) (Stored, time.Duration, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return Stored{}, 0, err
	}
	request.Header = headers
	response, err := client.HTTP.Do(request)
	if err != nil {
		return Stored{}, -1, fmt.Errorf("Spillway does not answer: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, largestAnswer))
	if err != nil {
		return Stored{}, -1, fmt.Errorf("Spillway's answer broke off: %w", err)
	}
	if response.StatusCode >= 300 {
		return Stored{}, pauseOf(response), refusalOf(response, text)
	}
	found := Stored{Notes: notes(response.Header)}
	if len(text) > 0 {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		if err := decoder.Decode(&found); err != nil {
			return Stored{}, 0, fmt.Errorf("Spillway's answer is not JSON: %w", err)
		}
	}
	return found, 0, nil
}

func pauseOf(response *http.Response) time.Duration {
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		if pause := retryAfter(response); pause > 0 {
			return pause
		}
		return -1
	case http.StatusConflict: // an attempt of ours that was cut off is still worked on
		return retryAfter(response)
	}
	return 0
}

// retryAfter reads both forms of the header; zero where it is not there.
func retryAfter(response *http.Response) time.Duration {
	text := response.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil {
		return max(time.Duration(seconds)*time.Second, 0)
	}
	if then, err := http.ParseTime(text); err == nil {
		return max(time.Until(then), 0)
	}
	return 0
}

func refusalOf(response *http.Response, text []byte) error {
	refusal := &Refusal{}
	if err := json.Unmarshal(text, refusal); err != nil || refusal.RequestID == "" {
		// Not Spillway's own words: a 404 of a proxy must not look as if the object were gone.
		return fmt.Errorf("%s answered %s, and not as Spillway does; is this the URL of the console?", response.Request.URL.Host, response.Status)
	}
	refusal.Status = response.StatusCode
	return refusal
}

// notes are what a person has to know although the change was stored.
func notes(headers http.Header) []string {
	var found []string
	if kept := headers.Get("X-Spillway-Kept"); kept != "" {
		found = append(found, "A capacity test set the limit of "+kept+", and Spillway keeps it.")
	}
	if headers.Get("X-Spillway-Live") == "false" {
		reason := headers.Get("X-Spillway-Waits-For")
		found = append(found, strings.TrimSpace("The change is stored and not live on every node yet. "+reason))
	}
	return found
}
