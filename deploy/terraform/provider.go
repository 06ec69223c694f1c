package main

import (
	"context"
	"net/http"
	"net/url"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

const mostWaitS = 60

type spillway struct{}

type settings struct {
	URL     types.String `tfsdk:"url"`
	Token   types.String `tfsdk:"token"`
	Manager types.String `tfsdk:"manager"`
	Reason  types.String `tfsdk:"reason"`
	WaitS   types.Int64  `tfsdk:"wait_s"`
	Check   types.Bool   `tfsdk:"check_plans"`
}

func newProvider() provider.Provider {
	return spillway{}
}

func (spillway) Metadata(_ context.Context, _ provider.MetadataRequest, response *provider.MetadataResponse) {
	response.TypeName, response.Version = "spillway", version
}

func (spillway) Schema(_ context.Context, _ provider.SchemaRequest, response *provider.SchemaResponse) {
	response.Schema = schema.Schema{
		MarkdownDescription: "Manages load balancers, routes, pools and everything else that Spillway stores.",
		Attributes: map[string]schema.Attribute{
			"url":         schema.StringAttribute{Optional: true, MarkdownDescription: "The console, such as `https://spillway.example`. Default: `SPILLWAY_URL`."},
			"token":       schema.StringAttribute{Optional: true, Sensitive: true, MarkdownDescription: "An API token. Default: `SPILLWAY_TOKEN`."},
			"manager":     schema.StringAttribute{Optional: true, MarkdownDescription: "The pipeline that manages the objects; nobody else changes them then."},
			"reason":      schema.StringAttribute{Optional: true, MarkdownDescription: "The reason that the audit log has for each change."},
			"wait_s":      schema.Int64Attribute{Optional: true, MarkdownDescription: "For how many seconds (at most 60) each change waits until it is live. Default: it does not wait."},
			"check_plans": schema.BoolAttribute{Optional: true, MarkdownDescription: "Whether a plan asks the console, by a dry run, if it would take each change. Default: true."},
		},
	}
}

func (spillway) Configure(ctx context.Context, request provider.ConfigureRequest, response *provider.ConfigureResponse) {
	var given settings
	response.Diagnostics.Append(request.Config.Get(ctx, &given)...)
	if response.Diagnostics.HasError() {
		return
	}
	client := &Client{
		URL:     orElse(given.URL, "SPILLWAY_URL"),
		Token:   orElse(given.Token, "SPILLWAY_TOKEN"),
		Manager: given.Manager.ValueString(),
		Reason:  given.Reason.ValueString(),
		WaitS:   given.WaitS.ValueInt64(),
		Agent:   "terraform-provider-spillway/" + version,
		HTTP:    &http.Client{Timeout: requestPatience, CheckRedirect: noRedirect},
	}
	if address, err := url.Parse(client.URL); err != nil || address.Host == "" {
		response.Diagnostics.AddAttributeError(path.Root("url"), "No URL", "Set url, or SPILLWAY_URL, to the console: https://spillway.example.")
	}
	if client.Token == "" {
		response.Diagnostics.AddAttributeError(path.Root("token"), "No token", "Set token, or SPILLWAY_TOKEN, to an API token.")
	}
	if client.WaitS < 0 || client.WaitS > mostWaitS {
		response.Diagnostics.AddAttributeError(path.Root("wait_s"), "Too long", "Use 0 to 60 seconds.")
	}
	if given.Check.IsNull() || given.Check.ValueBool() {
		client.Planned = newPlanned()
	}
	response.ResourceData, response.DataSourceData = client, client
}

// A token goes to the console that was named, and nowhere else.
func noRedirect(*http.Request, []*http.Request) error {
	return http.ErrUseLastResponse
}

func orElse(given types.String, variable string) string {
	if given.ValueString() != "" {
		return given.ValueString()
	}
	return os.Getenv(variable)
}

func (spillway) Resources(context.Context) []func() resource.Resource {
	var found []func() resource.Resource
	for _, kind := range kinds() {
		found = append(found, func() resource.Resource { return &object{kind: kind} })
	}
	return found
}

func (spillway) DataSources(context.Context) []func() datasource.DataSource {
	var found []func() datasource.DataSource
	for _, kind := range kinds() {
		found = append(found, func() datasource.DataSource { return &existing{kind: kind} })
	}
	return found
}
