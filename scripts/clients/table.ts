// The clients of npm and PyPI that can be tried without a person, with the versions that were.
import type { Package } from './install.ts';
import type { Commands } from './trial.ts';

export interface TriedClient extends Package {
  readonly name: string;
  /** Files to lie in its folder, by path; `home/` is its home. */
  readonly files?: Readonly<Record<string, string>>;
  /** In files, environment and commands `{url}` is the gateway's, `{model}` the stub model's. */
  readonly env?: Readonly<Record<string, string>>;
  readonly commands: Commands;
  /** Lifetime of its access tokens; short, so that a run can wait for their end. */
  readonly ttlSeconds?: number;
  /** For each of its commands; a minute unless told. */
  readonly limitSeconds?: number;
}

const MCP_SERVERS = (entry: object) =>
  JSON.stringify({ mcpServers: { postern: { url: '{url}', ...entry } } });

/** Also for Kilo, which is based on it. */
const OPENCODE_CONFIG = JSON.stringify({
  mcp: { postern: { type: 'remote', url: '{url}' } },
  permission: 'allow',
  model: 'stub/stub',
  small_model: 'stub/stub',
  provider: {
    stub: {
      npm: '@ai-sdk/openai-compatible',
      options: { baseURL: '{model}/v1', apiKey: 'none' },
      models: { stub: { tool_call: true } },
    },
  },
});

/** A command that insists on a terminal, and what is to be typed there: drivers/terminal.py. */
const runInTerminal = (...script: readonly string[]) => ['python3', 'terminal.py', ...script];

/** Programs of ours on a library: scripts/clients/drivers. */
function createDriverCommands(driver: string, ...options: readonly string[]): Commands {
  const start = driver.endsWith('.py') ? 'venv/bin/python' : 'node';
  const errand = (name: string) => [start, driver, '{url}', name, ...options];
  return { list: errand('list'), call: errand('call'), hold: errand('hold') };
}

const npmPackage = (name: string, specs: readonly string[], driver: string, ...options: string[]) =>
  ({ name, from: 'npm', specs, commands: createDriverCommands(driver, ...options) }) as const;

const pypiPackage = (
  name: string,
  specs: readonly string[],
  driver: string,
  ...options: string[]
) => ({ name, from: 'PyPI', specs, commands: createDriverCommands(driver, ...options) }) as const;

const COPILOT_PING = ['copilot', '--allow-all-tools', '-p', 'ping'];
const QWEN_PING = runInTerminal(
  'Type your message',
  'ping\\r',
  '--until',
  'Done.',
  '--',
  'qwen',
  '--yolo',
);
const CLINE_PING = ['cline', 'please ping'];
// It shows its prompt before it has logged in: `/mcp` says when the one tool is there.
const CONTINUE_PING = runInTerminal(
  ...['Ask anything', '/mcp\\r', '🔧1', '\\x1b', 'Ask anything', 'please ping\\r'],
  ...['--until', 'Done.', '--', 'cn', '--auto', '--config', 'config.yaml'],
);
const GEMINI_PING = ['gemini', '--yolo', '--model', 'gemini-2.5-flash', '-p', 'ping'];
const INSPECTOR = ['mcp-inspector', '--cli', '{url}', '--transport', 'http', '--method'];

export const CLIENTS: readonly TriedClient[] = [
  npmPackage('TypeScript SDK 1.x', ['@modelcontextprotocol/sdk@1.32.2'], 'sdk-1.mjs'),
  npmPackage('TypeScript SDK 2.x', ['@modelcontextprotocol/client@2.4.0'], 'sdk-2.mjs'),
  npmPackage(
    'TypeScript SDK 2.x, stateless',
    ['@modelcontextprotocol/client@2.4.0'],
    'sdk-2.mjs',
    'stateless',
  ),
  pypiPackage('Python SDK 1.x', ['mcp==1.30.0'], 'sdk_1.py'),
  pypiPackage('Python SDK 2.x', ['mcp==2.3.0'], 'sdk_2.py'),
  pypiPackage('Python SDK 2.x, sessions', ['mcp==2.3.0'], 'sdk_2.py', 'session'),
  pypiPackage('FastMCP', ['fastmcp==4.1.2'], 'fastmcp_client.py'),
  {
    name: 'Claude Code',
    from: 'npm',
    specs: ['@anthropic-ai/claude-code@2.1.330'],
    scripts: true,
    env: {
      ANTHROPIC_BASE_URL: '{model}',
      ANTHROPIC_API_KEY: 'none',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      // The tools are there with the first message, and whole.
      ENABLE_TOOL_SEARCH: 'false',
      MCP_CONNECTION_NONBLOCKING: 'false',
    },
    commands: {
      add: ['claude', 'mcp', 'add', '--transport', 'http', 'postern', '{url}'],
      logIn: runInTerminal('--', 'claude', 'mcp', 'login', 'postern'),
      list: ['claude', 'mcp', 'get', 'postern'],
      call: ['claude', '-p', 'ping', '--allowedTools', 'mcp__postern__service_ping'],
    },
  },
  {
    name: 'Codex',
    from: 'npm',
    specs: ['@openai/codex@0.169.0'],
    files: { 'home/.codex/config.toml': '[mcp_servers.postern]\nurl = "{url}"\n' },
    commands: { logIn: ['codex', 'mcp', 'login', 'postern'], ...createDriverCommands('codex.mjs') },
    // It refreshes a token with less than 30 s left before every request.
    ttlSeconds: 45,
  },
  {
    name: 'Gemini CLI',
    from: 'npm',
    specs: ['@google/gemini-cli@0.61.0'],
    files: {
      'home/.gemini/settings.json': JSON.stringify({
        security: { auth: { selectedType: 'gemini-api-key' }, folderTrust: { enabled: false } },
        mcpServers: { postern: { httpUrl: '{url}' } },
      }),
    },
    env: { GEMINI_API_KEY: 'none', GOOGLE_GEMINI_BASE_URL: '{model}' },
    commands: {
      logIn: runInTerminal('[Y/n]', 'y\\r', '--', 'gemini', '-p', '/mcp auth postern'),
      // `gemini mcp list` connects and lists nothing.
      list: GEMINI_PING,
      call: GEMINI_PING,
    },
  },
  {
    name: 'OpenCode',
    from: 'npm',
    specs: ['opencode-ai@1.18.33'],
    scripts: true,
    files: { 'opencode.json': OPENCODE_CONFIG },
    commands: {
      logIn: ['opencode', 'mcp', 'auth', 'postern'],
      list: ['opencode', 'mcp', 'list'],
      call: ['opencode', 'run', 'ping'],
    },
  },
  {
    name: 'Kilo CLI',
    from: 'npm',
    specs: ['@kilocode/cli@7.7.7'],
    scripts: true,
    files: { 'kilo.json': OPENCODE_CONFIG },
    commands: {
      logIn: ['kilo', 'mcp', 'auth', 'postern'],
      list: ['kilo', 'mcp', 'list'],
      call: ['kilo', 'run', 'ping'],
    },
    // It installs what it needs in its first call.
    limitSeconds: 180,
  },
  {
    name: 'Copilot CLI',
    from: 'npm',
    specs: ['@github/copilot@1.0.102'],
    files: { 'home/.copilot/mcp-config.json': MCP_SERVERS({ type: 'http', tools: ['*'] }) },
    env: {
      COPILOT_OFFLINE: 'true',
      COPILOT_PROVIDER_BASE_URL: '{model}/v1',
      COPILOT_MODEL: 'stub',
    },
    commands: {
      // It logs in when it starts, once the folder is trusted.
      logIn: runInTerminal(
        'enter to select',
        '\\r',
        '--until',
        'server connected',
        '--',
        'copilot',
      ),
      list: COPILOT_PING,
      call: COPILOT_PING,
    },
  },
  {
    name: 'Qwen Code',
    from: 'npm',
    specs: ['@qwen-code/qwen-code@0.24.4'],
    files: {
      'home/.qwen/settings.json': JSON.stringify({
        security: { auth: { selectedType: 'openai' }, folderTrust: { enabled: false } },
        mcpServers: { postern: { httpUrl: '{url}' } },
      }),
    },
    env: { OPENAI_API_KEY: 'none', OPENAI_BASE_URL: '{model}/v1', OPENAI_MODEL: 'stub' },
    commands: {
      // The third line of the server's menu.
      logIn: runInTerminal(
        ...['Type your message', '/mcp\\r', 'postern', '\\r', 'Authenticate', '\\x1b[B'],
        ...['Authenticate', '\\x1b[B', 'Authenticate', '\\r'],
        ...['--until', 'uccessful', '--', 'qwen'],
      ),
      // A call does not wait until it has connected: that is for a person to see.
      list: QWEN_PING,
    },
  },
  {
    name: 'Cline CLI',
    from: 'npm',
    specs: ['cline@3.0.65'],
    files: {
      'home/.cline/data/settings/providers.json': JSON.stringify({
        version: 1,
        lastUsedProvider: 'openai-compatible',
        providers: {
          'openai-compatible': {
            settings: {
              provider: 'openai-compatible',
              apiKey: 'none',
              model: 'stub',
              baseUrl: '{model}/v1',
            },
            updatedAt: '2026-11-23T00:00:00.000Z',
            tokenSource: 'manual',
          },
        },
      }),
    },
    commands: {
      // Each question has its answer already; the fifth is for a client ID.
      logIn: runInTerminal(
        ...['Server name', '\\r', 'Server type', '\\r', 'Server URL', '\\r'],
        ...['Authentication', '\\r', 'OAuth client ID', '\\r', 'OAuth scope', '\\r'],
        ...['--until', 'authorization completed', '--'],
        ...['cline', 'mcp', 'install', 'postern', '--transport', 'http', '{url}'],
      ),
      list: CLINE_PING,
      call: CLINE_PING,
    },
  },
  {
    name: 'Continue CLI',
    from: 'npm',
    // It starts mcp-remote with npx, which would fetch it.
    specs: ['@continuedev/cli@1.5.47', 'mcp-remote@0.15.1'],
    files: {
      // JSON is YAML, too.
      'config.yaml': JSON.stringify({
        name: 'Trial',
        version: '1.0.0',
        schema: 'v1',
        models: [
          {
            name: 'stub',
            provider: 'openai',
            model: 'stub',
            apiBase: '{model}/v1',
            apiKey: 'none',
            capabilities: ['tool_use'],
          },
        ],
        mcpServers: [{ name: 'postern', type: 'streamable-http', url: '{url}' }],
      }),
    },
    commands: { list: CONTINUE_PING, call: CONTINUE_PING },
  },
  {
    name: 'Inspector',
    from: 'npm',
    specs: ['@modelcontextprotocol/inspector@2.12.0'],
    env: { MCP_AUTO_OPEN_ENABLED: 'true', MCP_INSPECTOR_SECRET_STORE: 'file' },
    commands: {
      list: [...INSPECTOR, 'tools/list'],
      call: [
        ...INSPECTOR,
        'tools/call',
        '--tool-name',
        'service_ping',
        '--tool-arg',
        'message=hello',
      ],
    },
  },
  {
    name: 'mcp-remote',
    from: 'npm',
    specs: ['mcp-remote@0.15.1'],
    commands: createDriverCommands('stdio-proxy.mjs', 'mcp-remote'),
  },
  {
    name: 'mcporter',
    from: 'npm',
    specs: ['mcporter@0.12.3'],
    files: {
      'config/mcporter.json': MCP_SERVERS({
        auth: 'oauth',
        oauthRedirectUrl: 'http://127.0.0.1:8766/callback',
      }),
    },
    commands: {
      logIn: ['mcporter', 'auth', 'postern'],
      list: ['mcporter', 'list', 'postern'],
      call: ['mcporter', 'call', 'postern.service_ping', 'message=hello'],
    },
  },
  {
    name: 'mcpc',
    from: 'npm',
    specs: ['@apify/mcpc@0.2.6'],
    commands: {
      logIn: ['mcpc', 'login', '{url}'],
      list: ['mcpc', 'connect', '{url}', '@postern'],
      call: ['mcpc', '@postern', 'tools-call', 'service_ping', 'message:=hello'],
      finish: ['mcpc', 'close', '@postern'],
    },
  },
  {
    name: 'mcp-cli',
    from: 'npm',
    specs: ['@wong2/mcp-cli@2.0.0'],
    // Its menu comes in any order: nothing can be picked blindly.
    commands: {
      list: runInTerminal('--until', 'tool(service_ping)', '--', 'mcp-cli', '--url', '{url}'),
    },
  },
  npmPackage('AI SDK', ['@ai-sdk/mcp@2.0.99'], 'ai-sdk.mjs'),
  npmPackage('LangChain.js', ['@langchain/mcp-adapters@1.1.4', '@langchain/core'], 'langchain.mjs'),
  npmPackage('Mastra', ['@mastra/mcp@2.0.0'], 'mastra.mjs'),
  npmPackage('Mastra, its own login', ['@mastra/mcp@2.0.0'], 'mastra-own-login.mjs'),
  npmPackage('OpenAI Agents JS', ['@openai/agents@0.20.0'], 'openai-agents.mjs'),
  pypiPackage('LangChain', ['langchain-mcp-adapters==0.3.2'], 'langchain_client.py'),
  pypiPackage('Pydantic AI', ['pydantic-ai-slim[mcp]==2.68.0'], 'pydantic_ai_client.py'),
  pypiPackage('OpenAI Agents', ['openai-agents==0.24.0'], 'openai_agents_client.py'),
  pypiPackage('LlamaIndex', ['llama-index-tools-mcp==0.6.0'], 'llama_index_client.py'),
  pypiPackage('mcp-use', ['mcp-use==1.7.1'], 'mcp_use_client.py'),
  pypiPackage('Strands', ['strands-agents==1.62.0'], 'strands_client.py'),
  pypiPackage('Google ADK', ['google-adk[mcp]==2.13.0'], 'google_adk_client.py'),
];
