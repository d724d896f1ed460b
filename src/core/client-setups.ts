// How MCP clients are told of a gateway: one table for `postern dev`, the front page and the documentation. It is
// used in browsers as well, so it imports nothing of Node.js.

/** What a client is given. */
export interface GatewayEntry {
  /** Under which the client keeps it: letters, digits and hyphens. */
  readonly name: string;
  /** The address of `/mcp`. */
  readonly url: string;
}

export interface ClientSetup {
  readonly id: string;
  readonly title: string;
  /** Where `render` goes: `a terminal`, or the name of a file; undefined where the client has its own page for it. */
  readonly place: string | undefined;
  /** Of what `render` gives. */
  readonly language: 'sh' | 'json' | 'toml' | 'text';
  /** What is run, put into the file, or entered. */
  render(entry: GatewayEntry): string;
  /** What is left to do then, as a sentence in which code stands in backticks. */
  readonly next?: string;
  /** A link that adds the gateway when it is opened. */
  link?(entry: GatewayEntry): string;
  /** The client's own servers call the gateway, so it must be reachable from the internet. */
  readonly isRemote?: true;
}

export const DEFAULT_ENTRY_NAME = 'postern';

const TERMINAL = 'a terminal';

const toJson = (value: unknown): string => JSON.stringify(value, undefined, 2);

/** Base64 of ASCII, in browsers and in Node.js. */
const toBase64 = (text: string): string => btoa(text);

export const CLIENT_SETUPS: readonly ClientSetup[] = [
  {
    id: 'claude-code',
    title: 'Claude Code',
    place: TERMINAL,
    language: 'sh',
    render: ({ name, url }) => `claude mcp add --transport http ${name} ${url}`,
    next: 'Type `/mcp` in a session to log in.',
  },
  {
    id: 'claude',
    title: 'Claude',
    place: undefined,
    language: 'text',
    render: ({ url }) => url,
    next: 'Open Settings → Connectors → Add custom connector, and paste the address.',
    isRemote: true,
  },
  {
    id: 'cursor',
    title: 'Cursor',
    place: '.cursor/mcp.json',
    language: 'json',
    render: ({ name, url }) => toJson({ mcpServers: { [name]: { url } } }),
    next: 'Cursor Settings → MCP shows the gateway, with a button to log in.',
    link: ({ name, url }) =>
      `cursor://anysphere.cursor-deeplink/mcp/install?name=${encodeURIComponent(name)}&config=${encodeURIComponent(toBase64(JSON.stringify({ url })))}`,
  },
  {
    id: 'vscode',
    title: 'VS Code',
    place: '.vscode/mcp.json',
    language: 'json',
    render: ({ name, url }) => toJson({ servers: { [name]: { type: 'http', url } } }),
    next: 'Choose Start above the entry. VS Code asks whether it may log in.',
    link: ({ name, url }) =>
      `vscode:mcp/install?${encodeURIComponent(JSON.stringify({ name, type: 'http', url }))}`,
  },
  {
    id: 'chatgpt',
    title: 'ChatGPT',
    place: undefined,
    language: 'text',
    render: ({ url }) => url,
    next: 'Open Settings → Connectors (or Apps), turn on developer mode, and add a connector with this address and OAuth.',
    isRemote: true,
  },
  {
    id: 'codex',
    title: 'Codex',
    place: TERMINAL,
    language: 'sh',
    render: ({ name, url }) => `codex mcp add ${name} --url ${url}`,
    next: 'It opens the browser to log in.',
  },
  {
    id: 'gemini',
    title: 'Gemini CLI',
    place: TERMINAL,
    language: 'sh',
    render: ({ name, url }) => `gemini mcp add --transport http ${name} ${url}`,
    next: `Type \`/mcp auth ${DEFAULT_ENTRY_NAME}\` in a session to log in.`,
  },
  {
    id: 'claude-desktop',
    title: 'Claude Desktop',
    place: 'claude_desktop_config.json',
    language: 'json',
    render: ({ name, url }) =>
      toJson({ mcpServers: { [name]: { command: 'npx', args: ['-y', 'mcp-remote', url] } } }),
    next: 'Restart Claude Desktop. It opens the browser to log in.',
  },
  {
    id: 'inspector',
    title: 'MCP Inspector',
    place: TERMINAL,
    language: 'sh',
    render: ({ url }) => `npx @modelcontextprotocol/inspector --transport http --server-url ${url}`,
    next: 'It needs Node.js 22.19 or newer.',
  },
  {
    id: 'curl',
    title: 'curl',
    place: TERMINAL,
    language: 'sh',
    render: ({ url }) => `curl ${url} \\
  -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\
  -H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/list' \\
  -d '${JSON.stringify(LIST_TOOLS)}'`,
    next: '`$TOKEN` is an access token of the provider.',
  },
];

const LIST_TOOLS = {
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/list',
  params: {
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
};
