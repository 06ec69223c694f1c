package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Planned is what one run of Terraform plans, so that a dry run of an object has those beside it that do not exist yet.
type Planned struct {
	mutex     sync.Mutex
	documents map[string]Object // by kind and name; nil for what cannot be asked about: not known, or refused
	named     map[string][]string
	seen      map[string]bool // what the console has
	replaced  map[string]bool // what stands in the place of something that is there under another name
	silent    bool            // the console did not answer; the first warning is enough
}

func newPlanned() *Planned {
	return &Planned{documents: map[string]Object{}, named: map[string][]string{}, seen: map[string]bool{}, replaced: map[string]bool{}}
}

func (kind Kind) key(of row) string {
	return kind.Type + " " + kind.id(of)
}

func (kind Kind) document(of row) Object {
	found := Object{"kind": kind.Kind, "name": of.Name, "spec": of.Spec}
	if kind.Owned {
		found["account"] = of.Account
	}
	return found
}

func (planned *Planned) see(kind Kind, of row) {
	if planned == nil {
		return
	}
	planned.mutex.Lock()
	defer planned.mutex.Unlock()
	planned.seen[kind.key(of)] = true
}

// add remembers what is planned; a document that is nil hides what names it from being asked about.
func (planned *Planned) add(kind Kind, of row, document Object) {
	planned.mutex.Lock()
	defer planned.mutex.Unlock()
	key := kind.key(of)
	if _, again := planned.documents[key]; !again {
		for _, name := range []string{of.Name, of.Account + "/" + of.Name} {
			planned.named[name] = append(planned.named[name], key)
		}
	}
	planned.documents[key] = document
}

// beside are the planned objects that a document names, and those that these name; false where one cannot be asked about.
func (planned *Planned) beside(own string, document Object) ([]Object, bool) {
	planned.mutex.Lock()
	defer planned.mutex.Unlock()
	taken, found, open := map[string]bool{own: true}, []Object{}, []Object{document}
	for len(open) > 0 {
		next := open[0]
		open = open[1:]
		for _, text := range texts(next) {
			for _, key := range planned.named[text] {
				other := planned.documents[key]
				if taken[key] {
					continue
				}
				if other == nil {
					return nil, false
				}
				taken[key] = true
				found, open = append(found, other), append(open, other)
			}
		}
	}
	return found, true
}

// texts are all values of a document that may name another object.
func texts(value any) []string {
	var found []string
	switch held := value.(type) {
	case string:
		return []string{held}
	case []any:
		for _, each := range held {
			found = append(found, texts(each)...)
		}
	case Object:
		for _, each := range held {
			found = append(found, texts(each)...)
		}
	}
	return found
}

// Check asks whether the console would store the object, without storing it; others are what is planned beside it.
func (client *Client) Check(ctx context.Context, kind Kind, of row, condition http.Header, others []Object) error {
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	where, body, query := kind.path(of), Object{"spec": of.Spec}, url.Values{"dry_run": {"true"}}
	headers := http.Header{"Content-Type": {"application/json"}}
	if len(others) == 0 {
		maps.Copy(headers, condition)
	} else {
		where, body = "apply", Object{"objects": append([]Object{kind.document(of)}, others...)}
		query.Set("dry_run", "plan")
	}
	if client.Manager != "" {
		query.Set("manager", client.Manager)
	}
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	address := strings.TrimSuffix(client.URL, "/") + "/api/v1/" + where + "?" + query.Encode()
	_, err = client.repeated(ctx, http.MethodPut, address, text, headers, checkTries)
	return ownErrors(err, len(others) > 0)
}

// ownErrors takes from the errors of a document with several objects those of the first one, and of all together.
func ownErrors(err error, several bool) error {
	var refusal *Refusal
	if !several || !errors.As(err, &refusal) || len(refusal.Errors) == 0 {
		return err
	}
	all := refusal.Errors
	refusal.Errors = nil
	for _, each := range all {
		pointer, own := strings.CutPrefix(each.Pointer, "/objects/0")
		if own || !strings.HasPrefix(pointer, "/objects/") {
			each.Pointer = pointer
			refusal.Errors = append(refusal.Errors, each)
		}
	}
	if len(refusal.Errors) == 0 {
		return nil // the others' errors stand at the others
	}
	return refusal
}

// ModifyPlan changes no plan: it says before an apply what the console would refuse.
func (own *object) ModifyPlan(ctx context.Context, request resource.ModifyPlanRequest, response *resource.ModifyPlanResponse) {
	if own.client == nil || own.client.Planned == nil || request.Plan.Raw.IsNull() || request.Plan.Raw.Equal(request.State.Raw) {
		return
	}
	named, known, err := own.kind.known(request.Plan.Raw)
	if err != nil || named == (identity{}) {
		return
	}
	planned, of := own.client.Planned, row{Account: named.account, Name: named.name}
	if !known {
		planned.add(own.kind, of, nil)
		return
	}
	if of, err = own.kind.read(request.Plan.Raw); err != nil {
		return
	}
	condition, replaces := own.condition(request, of)
	if condition == nil {
		return // asked again in a moment, without a state: Terraform replaces it
	}
	others, askable := planned.beside(own.kind.key(of), own.kind.document(of))
	if !askable {
		planned.add(own.kind, of, nil)
		return
	}
	planned.add(own.kind, of, own.kind.document(of))
	if err := own.client.Check(ctx, own.kind, of, condition, others); err != nil {
		if own.told(&response.Diagnostics, of, err, request.State.Raw.IsNull(), replaces) {
			planned.add(own.kind, of, nil)
		}
	}
}

// condition is what must be there for the change, nil while the plan is not the last one; and whether it replaces.
func (own *object) condition(request resource.ModifyPlanRequest, of row) (http.Header, bool) {
	planned, key := own.client.Planned, own.kind.key(of)
	planned.mutex.Lock()
	defer planned.mutex.Unlock()
	if request.State.Raw.IsNull() {
		if planned.seen[key] {
			return http.Header{"If-Match": {"*"}}, true // deleted before
		}
		return http.Header{"If-None-Match": {"*"}}, planned.replaced[key]
	}
	before, err := own.kind.read(request.State.Raw)
	if err != nil || own.kind.key(before) != key {
		planned.replaced[key] = true
		return nil, true
	}
	return http.Header{"If-Match": {tag(before.Version)}}, false
}

// told says why the console would not take it, and whether that is an error.
func (own *object) told(diagnostics *diag.Diagnostics, of row, err error, isNew, replaces bool) bool {
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		own.client.Planned.mutex.Lock()
		defer own.client.Planned.mutex.Unlock()
		if !own.client.Planned.silent {
			diagnostics.AddWarning("The plan was not checked", err.Error())
		}
		own.client.Planned.silent = true
		return false
	}
	if refusal.Status == http.StatusForbidden {
		diagnostics.AddWarning("This token may not apply the plan", own.kind.id(of)+": "+refusal.Error())
		return false
	}
	var found diag.Diagnostics
	switch {
	case refusal.Status == http.StatusPreconditionFailed && isNew:
		existsAlready(&found, own.kind, of)
	case refusal.Status == http.StatusNotFound:
		found.AddError("Unknown kind", fmt.Sprintf("This console has no %s yet: it is older than the provider. Update it.", own.kind.Noun))
	default:
		explain(&found, own.kind, refusal)
	}
	for _, each := range found {
		if replaces { // what it replaces may be in its way until the apply has deleted that
			diagnostics.AddWarning(each.Summary(), own.kind.id(of)+": "+each.Detail())
			continue
		}
		diagnostics.Append(each)
	}
	return !replaces
}

type identity struct{ account, name string }

// known says how a planned object is called, as far as that is known, and whether all of it is.
func (kind Kind) known(value tftypes.Value) (identity, bool, error) {
	parts := map[string]tftypes.Value{}
	if err := value.As(&parts); err != nil {
		return identity{}, false, err
	}
	var found identity
	texts := map[string]*string{"name": &found.name}
	if kind.Owned {
		texts["account"] = &found.account
	}
	for name, text := range texts {
		if !parts[name].IsKnown() {
			return identity{}, false, nil
		}
		if err := parts[name].As(text); err != nil {
			return identity{}, false, err
		}
	}
	return found, parts["spec"].IsFullyKnown(), nil
}
