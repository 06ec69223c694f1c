package main

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
)

// existing is the data source of one kind: an object that somebody else manages.
type existing struct {
	kind   Kind
	client *Client
}

func (source *existing) Metadata(_ context.Context, request datasource.MetadataRequest, response *datasource.MetadataResponse) {
	response.TypeName = request.ProviderTypeName + "_" + source.kind.Type
}

func (source *existing) Schema(_ context.Context, _ datasource.SchemaRequest, response *datasource.SchemaResponse) {
	found := map[string]schema.Attribute{
		"name":    schema.StringAttribute{Required: true, MarkdownDescription: "Its name."},
		"id":      schema.StringAttribute{Computed: true, MarkdownDescription: "`account/name`, or `name` for what belongs to the platform."},
		"version": schema.Int64Attribute{Computed: true, MarkdownDescription: "Increases with each change."},
		"spec":    schema.SingleNestedAttribute{Computed: true, Attributes: shown(source.kind.Fields), MarkdownDescription: "The definition with its defaults; secrets are never shown."},
	}
	if source.kind.Owned {
		found["account"] = schema.StringAttribute{Required: true, MarkdownDescription: "The account that owns it."}
	}
	response.Schema = schema.Schema{MarkdownDescription: source.kind.Help, Attributes: found}
}

func (source *existing) Configure(_ context.Context, request datasource.ConfigureRequest, _ *datasource.ConfigureResponse) {
	if client, configured := request.ProviderData.(*Client); configured {
		source.client = client
	}
}

func (source *existing) Read(ctx context.Context, request datasource.ReadRequest, response *datasource.ReadResponse) {
	wanted, err := source.kind.read(request.Config.Raw)
	if err != nil {
		response.Diagnostics.AddError("The configuration cannot be read", err.Error())
		return
	}
	stored, err := source.client.Get(ctx, source.kind.path(wanted))
	if err != nil {
		explain(&response.Diagnostics, source.kind, err)
		return
	}
	wanted.Version, wanted.Spec = stored.Version, stored.Spec
	response.State.Raw, err = source.kind.write(wanted)
	if err != nil {
		response.Diagnostics.AddError("The answer cannot be read", err.Error())
	}
}
