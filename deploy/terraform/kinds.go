package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	resources "github.com/hashicorp/terraform-plugin-framework/resource/schema"
)

// What the console declares of each kind; `make openapi` writes the file.
//
//go:embed kinds.json
var declared []byte

// Kind is one kind of objects: how Terraform calls it, where the API has it, and the fields of its spec.
type Kind struct {
	Kind   string  `json:"kind"` // as documents call it
	Type   string  `json:"type"`
	Noun   string  `json:"noun"`
	Help   string  `json:"help"`
	Owned  bool    `json:"owned"` // whether it belongs to an account that is part of its name
	Fields []Field `json:"fields"`
}

// Field is one field of an object: a value of the type, an object of fields, or a list (or a set) of those.
type Field struct {
	Name     string   `json:"name"`
	Type     string   `json:"type"` // string, integer, number, boolean, object, map, json, any (text, or true and false)
	Help     string   `json:"help"`
	Many     bool     `json:"many"`
	Set      bool     `json:"set"`
	Key      []string `json:"key"` // the fields by which entries of a list are told apart
	Required bool     `json:"required"`
	Secret   bool     `json:"secret"`
	Words    []string `json:"words"`
	Default  any      `json:"default"`
	Fields   []Field  `json:"fields"`
}

var kinds = sync.OnceValue(func() []Kind {
	var found []Kind
	decoder := json.NewDecoder(strings.NewReader(string(declared)))
	decoder.UseNumber() // as the client reads what defaults are compared with
	if err := decoder.Decode(&found); err != nil {
		panic(fmt.Sprintf("kinds.json: %s", err))
	}
	return found
})

// terraformType is what Terraform's protocol calls values of the field.
func (field Field) terraformType() tftypes.Type {
	one := field.oneType()
	switch {
	case field.Many && field.Set:
		return tftypes.Set{ElementType: one}
	case field.Many:
		return tftypes.List{ElementType: one}
	}
	return one
}

func (field Field) oneType() tftypes.Type {
	switch field.Type {
	case "integer", "number":
		return tftypes.Number
	case "boolean":
		return tftypes.Bool
	case "map":
		return tftypes.Map{ElementType: tftypes.String}
	case "object":
		return objectType(field.Fields)
	}
	return tftypes.String
}

func (field Field) elementType() attr.Type {
	if field.Type == "integer" {
		return types.Int64Type
	}
	return types.StringType
}

func objectType(fields []Field) tftypes.Object {
	found := map[string]tftypes.Type{}
	for _, field := range fields {
		found[field.Name] = field.terraformType()
	}
	return tftypes.Object{AttributeTypes: found}
}

// attributes are what a resource says of fields; nothing is computed, so that a plan shows what was written.
func attributes(fields []Field) map[string]resources.Attribute {
	found := map[string]resources.Attribute{}
	for _, field := range fields {
		found[field.Name] = field.attribute()
	}
	return found
}

func (field Field) attribute() resources.Attribute {
	required, optional, help := field.Required, !field.Required, field.Help
	switch {
	case field.Type == "object" && field.Many:
		nested := resources.NestedAttributeObject{Attributes: attributes(field.Fields)}
		return resources.ListNestedAttribute{Required: required, Optional: optional, MarkdownDescription: help, NestedObject: nested}
	case field.Type == "object":
		return resources.SingleNestedAttribute{Required: required, Optional: optional, MarkdownDescription: help, Attributes: attributes(field.Fields)}
	case field.Many && field.Set:
		return resources.SetAttribute{Required: required, Optional: optional, MarkdownDescription: help, ElementType: field.elementType()}
	case field.Many:
		return resources.ListAttribute{Required: required, Optional: optional, MarkdownDescription: help, ElementType: field.elementType()}
	case field.Type == "map":
		return resources.MapAttribute{Required: required, Optional: optional, Sensitive: field.Secret, MarkdownDescription: help, ElementType: types.StringType}
	case field.Type == "integer":
		return resources.Int64Attribute{Required: required, Optional: optional, MarkdownDescription: help}
	case field.Type == "number":
		return resources.Float64Attribute{Required: required, Optional: optional, MarkdownDescription: help}
	case field.Type == "boolean":
		return resources.BoolAttribute{Required: required, Optional: optional, MarkdownDescription: help}
	}
	text := resources.StringAttribute{Required: required, Optional: optional, Sensitive: field.Secret, MarkdownDescription: help}
	if len(field.Words) > 0 {
		text.Validators = []validator.String{oneOf(field.Words)}
	}
	return text
}

// shown are the fields of a data source: all of them computed.
func shown(fields []Field) map[string]schema.Attribute {
	found := map[string]schema.Attribute{}
	for _, field := range fields {
		found[field.Name] = field.shown()
	}
	return found
}

func (field Field) shown() schema.Attribute {
	help := field.Help
	switch {
	case field.Type == "object" && field.Many:
		nested := schema.NestedAttributeObject{Attributes: shown(field.Fields)}
		return schema.ListNestedAttribute{Computed: true, MarkdownDescription: help, NestedObject: nested}
	case field.Type == "object":
		return schema.SingleNestedAttribute{Computed: true, MarkdownDescription: help, Attributes: shown(field.Fields)}
	case field.Many && field.Set:
		return schema.SetAttribute{Computed: true, MarkdownDescription: help, ElementType: field.elementType()}
	case field.Many:
		return schema.ListAttribute{Computed: true, MarkdownDescription: help, ElementType: field.elementType()}
	case field.Type == "map":
		return schema.MapAttribute{Computed: true, MarkdownDescription: help, ElementType: types.StringType}
	case field.Type == "integer":
		return schema.Int64Attribute{Computed: true, MarkdownDescription: help}
	case field.Type == "number":
		return schema.Float64Attribute{Computed: true, MarkdownDescription: help}
	case field.Type == "boolean":
		return schema.BoolAttribute{Computed: true, MarkdownDescription: help}
	}
	return schema.StringAttribute{Computed: true, MarkdownDescription: help}
}

// oneOf refuses a word that is not in the list when the configuration is validated, before anything is planned.
type oneOf []string

func (words oneOf) Description(context.Context) string {
	return "one of " + strings.Join(words, ", ")
}

func (words oneOf) MarkdownDescription(ctx context.Context) string {
	return words.Description(ctx)
}

func (words oneOf) ValidateString(ctx context.Context, request validator.StringRequest, response *validator.StringResponse) {
	if request.ConfigValue.IsNull() || request.ConfigValue.IsUnknown() {
		return
	}
	for _, word := range words {
		if word == request.ConfigValue.ValueString() {
			return
		}
	}
	response.Diagnostics.AddAttributeError(request.Path, "Unknown word", "Use "+words.Description(ctx)+".")
}
