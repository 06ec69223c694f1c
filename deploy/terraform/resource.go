package main

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Where Terraform keeps what the console stored, as the console shows it: no secret is in there.
const memory = "stored"

// object is the resource of one kind.
type object struct {
	kind   Kind
	client *Client
}

// row is what Terraform has of an object.
type row struct {
	Account, Name string
	Version       int64
	Spec          Object
}

func (own *object) Metadata(_ context.Context, request resource.MetadataRequest, response *resource.MetadataResponse) {
	response.TypeName = request.ProviderTypeName + "_" + own.kind.Type
}

func (own *object) Schema(_ context.Context, _ resource.SchemaRequest, response *resource.SchemaResponse) {
	fixed := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	found := map[string]schema.Attribute{
		"name":    schema.StringAttribute{Required: true, PlanModifiers: fixed, MarkdownDescription: "Its name: lower-case letters, digits and hyphens."},
		"id":      schema.StringAttribute{Computed: true, PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()}, MarkdownDescription: "What imports and references call it: `account/name`, or `name` for what belongs to the platform."},
		"version": schema.Int64Attribute{Computed: true, MarkdownDescription: "Increases with each change, whoever makes it."},
		"spec":    schema.SingleNestedAttribute{Required: true, Attributes: attributes(own.kind.Fields), MarkdownDescription: "The definition, as in documents."},
	}
	if own.kind.Owned {
		found["account"] = schema.StringAttribute{Required: true, PlanModifiers: fixed, MarkdownDescription: "The account that owns it."}
	}
	response.Schema = schema.Schema{MarkdownDescription: own.kind.Help, Attributes: found}
}

func (own *object) Configure(_ context.Context, request resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	if client, configured := request.ProviderData.(*Client); configured {
		own.client = client
	}
}

func (own *object) Create(ctx context.Context, request resource.CreateRequest, response *resource.CreateResponse) {
	planned, err := own.kind.read(request.Plan.Raw)
	if err != nil {
		response.Diagnostics.AddError("The plan cannot be read", err.Error())
		return
	}
	stored, err := own.client.Create(ctx, own.kind.path(planned), planned.Spec)
	if isStatus(err, http.StatusPreconditionFailed) {
		existsAlready(&response.Diagnostics, own.kind, planned)
		return
	}
	if err != nil {
		explain(&response.Diagnostics, own.kind, err)
		return
	}
	response.State.Raw, err = own.kept(ctx, planned, stored, response.Private, &response.Diagnostics)
	if err != nil {
		response.Diagnostics.AddError("The state cannot be written", err.Error())
	}
}

func (own *object) Update(ctx context.Context, request resource.UpdateRequest, response *resource.UpdateResponse) {
	planned, err := own.kind.read(request.Plan.Raw)
	before, errBefore := own.kind.read(request.State.Raw)
	if err != nil || errBefore != nil {
		response.Diagnostics.AddError("The plan cannot be read", "Report this with the configuration.")
		return
	}
	stored, err := own.client.Replace(ctx, own.kind.path(planned), before.Version, planned.Spec)
	if err != nil {
		explain(&response.Diagnostics, own.kind, err)
		return
	}
	response.State.Raw, err = own.kept(ctx, planned, stored, response.Private, &response.Diagnostics)
	if err != nil {
		response.Diagnostics.AddError("The state cannot be written", err.Error())
	}
}

func (own *object) Read(ctx context.Context, request resource.ReadRequest, response *resource.ReadResponse) {
	state, err := own.kind.read(request.State.Raw)
	if err != nil {
		response.Diagnostics.AddError("The state cannot be read", err.Error())
		return
	}
	stored, err := own.client.Get(ctx, own.kind.path(state))
	if isStatus(err, http.StatusNotFound) {
		response.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		explain(&response.Diagnostics, own.kind, err)
		return
	}
	own.client.Planned.see(own.kind, state)
	known, diagnostics := request.Private.GetKey(ctx, memory)
	response.Diagnostics.Append(diagnostics...)
	state.Spec = own.seen(state, known, stored)
	response.State.Raw, err = own.kept(ctx, state, stored, response.Private, &response.Diagnostics)
	if err != nil {
		response.Diagnostics.AddError("The state cannot be written", err.Error())
	}
}

// seen is the spec of the state after a look at the console; what was imported a moment ago is as it is stored.
func (own *object) seen(state row, known []byte, stored Stored) Object {
	was, err := decodeJSON(known)
	if err != nil || state.Spec == nil {
		return plainObject(own.kind.spec(), stored.Spec)
	}
	found, _ := drifted(own.kind.spec(), state.Spec, was, stored.Spec).(Object)
	return found
}

func (own *object) Delete(ctx context.Context, request resource.DeleteRequest, response *resource.DeleteResponse) {
	state, err := own.kind.read(request.State.Raw)
	if err != nil {
		response.Diagnostics.AddError("The state cannot be read", err.Error())
		return
	}
	_, err = own.client.Delete(ctx, own.kind.path(state), state.Version)
	if err != nil && !isStatus(err, http.StatusNotFound) {
		explain(&response.Diagnostics, own.kind, err)
	}
}

func (own *object) ImportState(ctx context.Context, request resource.ImportStateRequest, response *resource.ImportStateResponse) {
	account, name, slash := strings.Cut(request.ID, "/")
	if slash != own.kind.Owned {
		want := map[bool]string{true: "account/name", false: "its name alone"}[own.kind.Owned]
		response.Diagnostics.AddError("Unknown name", "Write "+want+", not "+request.ID+".")
		return
	}
	if own.kind.Owned {
		response.Diagnostics.Append(response.State.SetAttribute(ctx, path.Root("account"), account)...)
	} else {
		name = account
	}
	response.Diagnostics.Append(response.State.SetAttribute(ctx, path.Root("name"), name)...)
	response.Diagnostics.Append(response.State.SetAttribute(ctx, path.Root("id"), request.ID)...)
}

// remembering is where a response keeps what only the provider reads.
type remembering interface {
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

// kept is the state of what is stored now; what the console shows of it is remembered, to see drift by.
func (own *object) kept(ctx context.Context, wanted row, stored Stored, private remembering, diagnostics *diag.Diagnostics) (tftypes.Value, error) {
	for _, note := range stored.Notes {
		diagnostics.AddWarning(own.kind.id(wanted), note)
	}
	text, err := json.Marshal(stored.Spec)
	if err != nil {
		return tftypes.Value{}, err
	}
	diagnostics.Append(private.SetKey(ctx, memory, text)...)
	wanted.Version = stored.Version
	return own.kind.write(wanted)
}
