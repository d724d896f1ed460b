// Setups of MCP clients for a gateway: one table for `postern dev`, the front page and the documentation. Browsers use it as
// well, so it imports nothing from Node.js.

import type { JsonObject } from '../platform/json.ts';
import { toShellWord } from '../platform/text.ts';

/** The entry for a client. */
export interface GatewayEntry {
  /** The client's name for it: letters, digits and hyphens. */
  readonly name: string;
  /** URL of `/mcp`. */
  readonly url: string;
  /** The gateway runs without authentication. */
  readonly isOpen?: true;
}

/** One way to add the gateway. */
export interface Snippet {
  /** Target of the text of `render`: `a terminal`, or the name of a file; undefined if the client has its own page for it. */
  readonly place: string | undefined;
  /** Language of the text of `render`. */
  readonly language: 'sh' | 'json' | 'toml' | 'text' | 'python';
  /** Renders the text to run, to put into the file, or to enter. */
  render(entry: GatewayEntry): string;
}

export interface ClientSetup extends Snippet {
  readonly id: string;
  readonly title: string;
  /** The remaining step, as a sentence with code in backticks. */
  next?(entry: GatewayEntry): string;
  /** Its login is untested: the steps come from its documentation. */
  readonly isUntried?: true;
  /** Another way. */
  readonly instead?: Snippet;
  /** A link that adds the gateway when it is opened. */
  link?(entry: GatewayEntry): string;
  /** The client's own servers call the gateway, so it must be reachable from the internet. */
  readonly isRemote?: true;
}

export const DEFAULT_ENTRY_NAME = 'postern';

const TERMINAL = { place: 'a terminal', language: 'sh' } as const;

/** Several programs have the command of Claude Code. */
const mcpAdd = (program: string): Snippet => ({
  ...TERMINAL,
  render: ({ name, url }) => `${program} mcp add --transport http ${name} ${toShellWord(url)}`,
});

const OWN_PAGE = {
  place: undefined,
  language: 'text',
  render: ({ url }: GatewayEntry) => url,
} as const;

/** A snippet to merge into a JSON file, whose `member` has the client's servers by name. */
const inJson = (place: string, member: string, describe: (url: string) => JsonObject): Snippet => ({
  place,
  language: 'json',
  render: ({ name, url }) => JSON.stringify({ [member]: { [name]: describe(url) } }, undefined, 2),
});

export const CLIENT_SETUPS: readonly ClientSetup[] = [
  {
    id: 'claude-code',
    title: 'Claude Code',
    ...mcpAdd('claude'),
    next: () => 'Type `/mcp` in a session to log in.',
  },
  {
    id: 'claude',
    title: 'Claude',
    ...OWN_PAGE,
    next: () => 'Open Settings → Connectors → Add custom connector, and paste the address.',
    isRemote: true,
  },
  {
    id: 'cursor',
    title: 'Cursor',
    ...inJson('.cursor/mcp.json', 'mcpServers', (url) => ({ url })),
    next: () => 'Cursor Settings → MCP shows the gateway, with a button to log in.',
    link: ({ name, url }) =>
      `cursor://anysphere.cursor-deeplink/mcp/install?name=${encodeURIComponent(name)}&config=${encodeURIComponent(btoa(JSON.stringify({ url })))}`,
  },
  {
    id: 'vscode',
    title: 'VS Code',
    ...inJson('.vscode/mcp.json', 'servers', (url) => ({ type: 'http', url })),
    next: () => 'Choose Start above the entry. VS Code asks whether it may log in.',
    link: ({ name, url }) =>
      `vscode:mcp/install?${encodeURIComponent(JSON.stringify({ name, type: 'http', url }))}`,
  },
  {
    id: 'chatgpt',
    title: 'ChatGPT',
    ...OWN_PAGE,
    next: () =>
      'Open Settings → Connectors (or Apps), turn on developer mode, and add a connector with this address and OAuth.',
    isRemote: true,
  },
  {
    id: 'codex',
    title: 'Codex',
    ...TERMINAL,
    render: ({ name, url }) => `codex mcp add ${name} --url ${toShellWord(url)}`,
    next: () => 'It opens the browser to log in.',
    instead: {
      place: '~/.codex/config.toml',
      language: 'toml',
      render: ({ name, url }) => `[mcp_servers.${name}]\nurl = "${url}"`,
    },
  },
  {
    id: 'gemini',
    title: 'Gemini CLI',
    ...mcpAdd('gemini'),
    next: ({ name }) => `Type \`/mcp auth ${name}\` in a session to log in.`,
    instead: inJson('~/.gemini/settings.json', 'mcpServers', (url) => ({ httpUrl: url })),
  },
  {
    id: 'claude-desktop',
    title: 'Claude Desktop',
    ...inJson('claude_desktop_config.json', 'mcpServers', (url) => ({
      command: 'npx',
      args: ['-y', 'mcp-remote', url],
    })),
    next: () => 'Restart Claude Desktop. It opens the browser to log in.',
  },
  {
    id: 'inspector',
    title: 'MCP Inspector',
    ...TERMINAL,
    render: ({ url }) =>
      `npx @modelcontextprotocol/inspector --transport http --server-url ${toShellWord(url)}`,
    next: () => 'It needs Node.js 22.19 or newer.',
  },
  {
    id: 'curl',
    title: 'curl',
    ...TERMINAL,
    render: ({ url, isOpen }) => `curl ${toShellWord(url)} \\
  ${isOpen ? '' : '-H "Authorization: Bearer $TOKEN" '}-H 'Content-Type: application/json' \\
  -H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/list' \\
  -d '${JSON.stringify(LIST_TOOLS)}'`,
    next: () =>
      '`$TOKEN` is an access token from the provider. In development, `curl <provider>/token-for/NAME` returns one; `postern dev` prints the command. Otherwise a client library gets one when you log in (see “Your own code” in docs/connect.md).',
  },
];

/** Less common clients, for the documentation and `postern connect`. */
export const MORE_CLIENT_SETUPS: readonly ClientSetup[] = [
  {
    id: 'qwen',
    title: 'Qwen Code',
    ...mcpAdd('qwen'),
    next: ({ name }) => `In a session, choose \`/mcp\`, \`${name}\`, Authenticate.`,
  },
  {
    id: 'copilot',
    title: 'GitHub Copilot CLI',
    ...mcpAdd('copilot'),
    next: () => 'It opens the browser when it starts.',
    instead: inJson('~/.copilot/mcp-config.json', 'mcpServers', (url) => ({
      type: 'http',
      url,
      tools: ['*'],
    })),
  },
  {
    id: 'opencode',
    title: 'OpenCode, Kilo Code CLI',
    ...inJson('opencode.json', 'mcp', (url) => ({ type: 'remote', url })),
    next: ({ name }) =>
      `Then run \`opencode mcp auth ${name}\`. For Kilo Code, use \`kilo.json\` and \`kilo mcp auth ${name}\`.`,
  },
  {
    id: 'mcporter',
    title: 'mcporter',
    ...inJson('config/mcporter.json', 'mcpServers', (url) => ({
      url,
      auth: 'oauth',
      oauthRedirectUrl: 'http://127.0.0.1:8766/callback',
    })),
    next: ({ name }) => `Then run \`npx mcporter auth ${name}\`.`,
  },
  {
    id: 'mcpc',
    title: 'mcpc',
    ...TERMINAL,
    render: ({ name, url }) =>
      `mcpc login ${toShellWord(url)}\nmcpc connect ${toShellWord(url)} @${name}`,
  },
  {
    id: 'mcp-cli',
    title: 'mcp-cli',
    ...TERMINAL,
    render: ({ url }) => `npx @wong2/mcp-cli --url ${toShellWord(url)}`,
  },
  {
    id: 'fastmcp',
    title: 'FastMCP',
    ...TERMINAL,
    render: ({ url }) =>
      `fastmcp list ${toShellWord(url)}\nfastmcp call ${toShellWord(url)} service_ping message=hello`,
    instead: {
      place: 'a program',
      language: 'python',
      render: ({ url }) => `async with Client("${url}", auth="oauth") as client:
    print(await client.call_tool("service_ping", {"message": "hello"}))`,
    },
  },
  {
    id: 'windsurf',
    title: 'Windsurf',
    ...inJson('mcp_config.json', 'mcpServers', (url) => ({ serverUrl: url })),
    isUntried: true,
  },
  {
    id: 'zed',
    title: 'Zed',
    ...inJson('settings.json', 'context_servers', (url) => ({ url })),
    isUntried: true,
  },
  {
    id: 'kiro',
    title: 'Kiro',
    ...inJson('.kiro/settings/mcp.json', 'mcpServers', (url) => ({ url })),
    isUntried: true,
  },
  {
    id: 'lm-studio',
    title: 'LM Studio',
    ...inJson('mcp.json', 'mcpServers', (url) => ({ url })),
    isUntried: true,
    next: () => 'If it does not log in, add a token in `headers`.',
  },
];

export const ALL_CLIENT_SETUPS: readonly ClientSetup[] = [...CLIENT_SETUPS, ...MORE_CLIENT_SETUPS];

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
