// Package kubernetes checks the Kubernetes files in envoy/ against the Go types
// of those who read them, Istio and Envoy Gateway, and compiles the filter's
// configs in them. It is a Go module of its own, for the sake of these types.
package kubernetes

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	wasm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/wasm/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	wasmplugin "github.com/envoyproxy/go-control-plane/envoy/extensions/wasm/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	istioextensions "istio.io/api/extensions/v1alpha1"
	istionetworking "istio.io/api/networking/v1alpha3"
	extensions "istio.io/client-go/pkg/apis/extensions/v1alpha1"
	networking "istio.io/client-go/pkg/apis/networking/v1alpha3"
	"sigs.k8s.io/yaml"

	gateway "github.com/envoyproxy/gateway/api/v1alpha1"

	"github.com/sluice-proxy/sluice/filter/config"
)

// shipped is the folder envoy.
const shipped = "../../envoy"

// read returns the text of a shipped file.
func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(shipped, path))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// decode decodes the one object of a shipped file, of the type that it says it
// has, and fails at any field that the type doesn't know.
func decode(t *testing.T, path, apiVersion, kind string, object any) {
	t.Helper()
	text := read(t, path)
	if err := yaml.UnmarshalStrict(text, object, yaml.DisallowUnknownFields); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for _, line := range []string{"apiVersion: " + apiVersion, "kind: " + kind} {
		if !bytes.Contains(text, []byte("\n"+line+"\n")) {
			t.Errorf("%s does not say %q", path, line)
		}
	}
}

// compile compiles a config of the filter, in JSON.
func compile(t *testing.T, document []byte) {
	t.Helper()
	if _, err := config.Parse(document); err != nil {
		t.Errorf("the filter's config is refused:\n%v", err)
	}
}

// message decodes a part of an EnvoyFilter into the message of Envoy's that it
// is to be, and fails at any field that the message doesn't know.
func message(t *testing.T, part *structpb.Struct, into proto.Message) {
	t.Helper()
	text, err := protojson.Marshal(part)
	if err != nil {
		t.Fatal(err)
	}
	if err := protojson.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

func TestIstioReadsTheWasmPluginAndTheFilterItsConfig(t *testing.T) {
	var plugin extensions.WasmPlugin
	decode(t, "istio/wasmplugin.yaml", "extensions.istio.io/v1alpha1", "WasmPlugin", &plugin)
	if got := plugin.Spec.FailStrategy; got != istioextensions.FailStrategy_FAIL_RELOAD {
		t.Errorf("failStrategy is %v", got)
	}
	if !strings.HasPrefix(plugin.Spec.Url, "oci://") {
		t.Errorf("url is %q, want an OCI image", plugin.Spec.Url)
	}
	// Istio gives Envoy the config as a string that holds this JSON.
	document, err := protojson.Marshal(plugin.Spec.PluginConfig)
	if err != nil {
		t.Fatal(err)
	}
	compile(t, document)
}

func TestEnvoyReadsWhatTheEnvoyFilterPutsAmongItsFilters(t *testing.T) {
	var filter networking.EnvoyFilter
	decode(t, "istio/envoyfilter.yaml", "networking.istio.io/v1alpha3", "EnvoyFilter", &filter)
	patch := onlyPatch(t, &filter, istionetworking.EnvoyFilter_HTTP_FILTER, istionetworking.EnvoyFilter_Patch_INSERT_BEFORE)
	var httpFilter hcm.HttpFilter
	message(t, patch, &httpFilter)
	var typed wasm.Wasm
	if err := httpFilter.GetTypedConfig().UnmarshalTo(&typed); err != nil {
		t.Fatal(err)
	}
	if got := typed.Config.GetFailurePolicy(); got != wasmplugin.FailurePolicy_FAIL_RELOAD {
		t.Errorf("failure_policy is %v", got)
	}
	if !strings.HasSuffix(typed.Config.GetVmConfig().GetCode().GetLocal().GetFilename(), "/plugin.wasm") {
		t.Error("the module is not the image's plugin.wasm")
	}
	var document structpb.Struct
	if err := typed.Config.GetConfiguration().UnmarshalTo(&document); err != nil {
		t.Fatal(err)
	}
	text, err := protojson.Marshal(&document)
	if err != nil {
		t.Fatal(err)
	}
	compile(t, text)
	encoded, err := proto.Marshal(&document)
	if err != nil {
		t.Fatal(err)
	}
	compile(t, encoded) // what Envoy hands to the filter
}

// onlyPatch returns the value of an EnvoyFilter's one patch.
func onlyPatch(t *testing.T, filter *networking.EnvoyFilter, to istionetworking.EnvoyFilter_ApplyTo,
	operation istionetworking.EnvoyFilter_Patch_Operation) *structpb.Struct {
	t.Helper()
	patches := filter.Spec.ConfigPatches
	if len(patches) != 1 || patches[0].ApplyTo != to || patches[0].Patch.Operation != operation {
		t.Fatalf("the patches are %v, want one %v of %v", patches, operation, to)
	}
	return patches[0].Patch.Value
}

func TestEnvoyGatewayReadsThePolicyAndTheFilterItsConfig(t *testing.T) {
	var policy gateway.EnvoyExtensionPolicy
	decode(t, "gateway/envoyextensionpolicy.yaml", "gateway.envoyproxy.io/v1alpha1", "EnvoyExtensionPolicy", &policy)
	if len(policy.Spec.TargetRefs) != 1 || len(policy.Spec.Wasm) != 1 {
		t.Fatalf("the policy has %d targets and %d filters, want one of each", len(policy.Spec.TargetRefs), len(policy.Spec.Wasm))
	}
	wasm := policy.Spec.Wasm[0]
	if wasm.Code.Type != gateway.ImageWasmCodeSourceType || wasm.Code.Image == nil || wasm.Code.HTTP != nil {
		t.Errorf("the code is %+v, want an image", wasm.Code)
	}
	// Envoy Gateway gives Envoy the config as a string that holds this JSON.
	compile(t, wasm.Config.Raw)

	var reload gateway.EnvoyPatchPolicy
	decode(t, "gateway/reload.yaml", "gateway.envoyproxy.io/v1alpha1", "EnvoyPatchPolicy", &reload)
	if reload.Spec.Type != gateway.JSONPatchEnvoyPatchType || len(reload.Spec.JSONPatches) != 1 {
		t.Fatalf("reload.yaml has %d patches of type %s, want one JSON patch", len(reload.Spec.JSONPatches), reload.Spec.Type)
	}
	operation := reload.Spec.JSONPatches[0].Operation
	if operation.JSONPath == nil || operation.Path == nil || *operation.Path != "failure_policy" ||
		string(operation.Value.Raw) != `"FAIL_RELOAD"` {
		t.Errorf("reload.yaml's patch is %+v", operation)
	}
	// Envoy Gateway calls an extension's filters so, whatever their own names.
	if prefix := string(gateway.EnvoyFilterWasm) + "/"; !strings.Contains(*operation.JSONPath, `"^`+prefix+`"`) {
		t.Errorf("reload.yaml's patch is for %s, want filters that begin with %s", *operation.JSONPath, prefix)
	}
	if reload.Spec.TargetRef.Name != policy.Spec.TargetRefs[0].Name {
		t.Error("reload.yaml and envoyextensionpolicy.yaml have different targets")
	}
}

func TestEveryStatsTagIsTheOneForPrometheus(t *testing.T) {
	var original, istio bootstrap.Bootstrap
	text, err := yaml.YAMLToJSONStrict(read(t, "prometheus/stats-tags.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := protojson.Unmarshal(text, &original); err != nil {
		t.Fatal(err)
	}

	var filter networking.EnvoyFilter
	decode(t, "istio/stats-tags.yaml", "networking.istio.io/v1alpha3", "EnvoyFilter", &filter)
	message(t, onlyPatch(t, &filter, istionetworking.EnvoyFilter_BOOTSTRAP, istionetworking.EnvoyFilter_Patch_MERGE), &istio)
	if !proto.Equal(&original, &istio) {
		t.Errorf("Istio's is %v, want %v", &istio, &original)
	}

	var proxy gateway.EnvoyProxy
	decode(t, "gateway/stats-tags.yaml", "gateway.envoyproxy.io/v1alpha1", "EnvoyProxy", &proxy)
	patches := proxy.Spec.Bootstrap.JSONPatches
	if len(patches) != 1 || *patches[0].Path != "/stats_config/stats_tags/-" {
		t.Fatalf("Envoy Gateway's patches are %+v, want one that adds a tag", patches)
	}
	added := []byte(`{"stats_config": {"stats_tags": [` + string(patches[0].Value.Raw) + `]}}`)
	var patched bootstrap.Bootstrap
	if err := protojson.Unmarshal(added, &patched); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(&original, &patched) {
		t.Errorf("Envoy Gateway's is %v, want %v", &patched, &original)
	}
}

func TestTheScrapeConfigIsWhatPrometheusCallsOne(t *testing.T) {
	// Prometheus's own type would bring in every cloud's libraries.
	var config struct {
		ScrapeConfigs []struct {
			JobName       string              `json:"job_name"`
			MetricsPath   string              `json:"metrics_path"`
			Params        map[string][]string `json:"params"`
			StaticConfigs []struct {
				Targets []string `json:"targets"`
			} `json:"static_configs"`
		} `json:"scrape_configs"`
	}
	if err := yaml.UnmarshalStrict(read(t, "prometheus/prometheus.yaml"), &config, yaml.DisallowUnknownFields); err != nil {
		t.Fatal(err)
	}
	if len(config.ScrapeConfigs) != 1 || len(config.ScrapeConfigs[0].Params["filter"]) != 1 ||
		len(config.ScrapeConfigs[0].StaticConfigs) != 1 || len(config.ScrapeConfigs[0].StaticConfigs[0].Targets) != 1 {
		t.Errorf("it is %+v, want one job with one filter and one target", config)
	}
}
