package main

import (
	"errors"
	"math/big"
	"net/http"
	"net/url"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// path is where the API has an object, which says itself what is wrong with a name.
func (kind Kind) path(of row) string {
	if kind.Owned {
		return kind.Noun + "/" + url.PathEscape(of.Account) + "/" + url.PathEscape(of.Name)
	}
	return kind.Noun + "/" + url.PathEscape(of.Name)
}

func (kind Kind) spec() Field {
	return Field{Name: "spec", Type: "object", Fields: kind.Fields}
}

func (kind Kind) id(of row) string {
	if kind.Owned {
		return of.Account + "/" + of.Name
	}
	return of.Name
}

// read takes an object out of what Terraform has of it.
func (kind Kind) read(value tftypes.Value) (row, error) {
	parts := map[string]tftypes.Value{}
	if err := value.As(&parts); err != nil {
		return row{}, err
	}
	var found row
	texts := map[string]*string{"name": &found.Name}
	if kind.Owned {
		texts["account"] = &found.Account
	}
	for name, text := range texts {
		if err := parts[name].As(text); err != nil {
			return row{}, err
		}
	}
	if version := parts["version"]; version.IsKnown() && !version.IsNull() {
		number := new(big.Float)
		if err := version.As(&number); err != nil {
			return row{}, err
		}
		found.Version, _ = number.Int64()
	}
	var err error
	found.Spec, err = encode(kind.Fields, parts["spec"])
	return found, err
}

// write makes of an object what Terraform keeps of it.
func (kind Kind) write(of row) (tftypes.Value, error) {
	spec, err := decode(kind.Fields, of.Spec)
	if err != nil {
		return tftypes.Value{}, err
	}
	types := map[string]tftypes.Type{"id": tftypes.String, "name": tftypes.String, "version": tftypes.Number, "spec": objectType(kind.Fields)}
	values := map[string]tftypes.Value{
		"id":      tftypes.NewValue(tftypes.String, kind.id(of)),
		"name":    tftypes.NewValue(tftypes.String, of.Name),
		"version": tftypes.NewValue(tftypes.Number, of.Version),
		"spec":    spec,
	}
	if kind.Owned {
		types["account"], values["account"] = tftypes.String, tftypes.NewValue(tftypes.String, of.Account)
	}
	return tftypes.NewValue(tftypes.Object{AttributeTypes: types}, values), nil
}

// explain says an error of the API at the attributes that it is about.
func explain(diagnostics *diag.Diagnostics, kind Kind, err error) {
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		diagnostics.AddError("Spillway cannot be asked", err.Error())
		return
	}
	if refusal.Status == http.StatusPreconditionFailed {
		diagnostics.AddError("Somebody changed it", "The object is not what the plan was made of. Plan again.")
		return
	}
	if len(refusal.Errors) == 0 {
		diagnostics.AddError(orText(refusal.Title, "Spillway refuses it"), refusal.Error())
	}
	for _, each := range refusal.Errors {
		detail := each.Detail + hints[each.Code]
		if each.Pointer != "" {
			detail += " (" + each.Pointer + ")"
		}
		diagnostics.AddAttributeError(pathOf(kind.Fields, each.Pointer), orText(refusal.Title, "Spillway refuses it"), detail)
	}
}

// What the console cannot know of Terraform, by the code of its error.
var hints = map[string]string{
	"unknown":       " If this configuration makes it, refer to it by its address, such as spillway_pool.shop.name, or by depends_on.",
	"unknown_field": " The provider knows this field, so the console is older than the provider: update it, or leave the field out.",
}

func existsAlready(diagnostics *diag.Diagnostics, kind Kind, of row) {
	name := kind.id(of)
	diagnostics.AddError(name+" exists already", "Import it: terraform import spillway_"+kind.Type+".NAME "+name)
}

func orText(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
