package pluginpb

// What host and plugin agree on before the first RPC: go-plugin's handshake. A program in another language that is started
// with [MagicCookieKey] set to [MagicCookieValue] prints one line on stdout,
//
//	1|1|unix|/path/of/its/socket|grpc|
//
// and serves the Plugin service there, together with gRPC's own health service for the name "plugin".
const (
	// MagicCookieKey and MagicCookieValue are an environment variable that tells a plugin that a host started it. It is no
	// secret: it keeps people from wondering about a plugin that they started by hand.
	MagicCookieKey   = "HERMESD_PLUGIN"
	MagicCookieValue = "hermes.plugin.v1"

	// ProtocolVersion is the second number of the handshake line. It changes only with the proto package.
	ProtocolVersion = 1

	// PluginName is the key of the one entry in go-plugin's plugin map on both sides.
	PluginName = "hermes.plugin.v1"

	// MaxMessageBytes is the size of a gRPC message that both sides take unless the host says otherwise in
	// [MaxMessageEnv]; bigger results go as chunks.
	MaxMessageBytes = 16 << 20

	// MaxMessageEnv names the environment variable, a decimal number of bytes, by which the host hands its limit on.
	MaxMessageEnv = "HERMESD_MAX_MESSAGE_BYTES"

	// LifelineEnv names the environment variable with the number of a descriptor that reaches its end when the host has
	// died; a plugin that sees the end exits.
	LifelineEnv = "HERMESD_LIFELINE_FD"
)
