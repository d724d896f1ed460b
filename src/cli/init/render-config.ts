// `postern.yaml`, as `postern init` writes it.
import { isObject, type JsonObject } from '../../platform/json.ts';

export interface ConfigFacts {
  /** Where editors find the schema, from the folder of the file. */
  readonly schema: string;
  readonly servers: JsonObject;
  /** Whether tools of the gateway's own are served, built in or the user's. */
  readonly hasOwnTools: boolean;
}

export const renderConfig = ({ schema, servers, hasOwnTools }: ConfigFacts): string =>
  `# yaml-language-server: $schema=${schema}
# The MCP servers behind the gateway, and who may use which tool. A change is loaded at once.
${hasOwnTools ? '' : '\n# The gateway has no tools of its own.\nbuiltIn: false\n'}
${renderServers(servers)}
# Who may use what. Without rules, everybody who logs in may use everything.
#rules:
#  - who: { groups: [staff] }
#    may: ["*"]
`;

const EXAMPLE = `# For example:
#mcpServers:
#  files:
#    command: npx
#    args: ["-y", "@modelcontextprotocol/server-filesystem", "."]
#  wiki:
#    url: https://wiki.example.com/mcp
mcpServers: {}
`;

function renderServers(servers: JsonObject): string {
  const entries = Object.entries(servers);
  if (entries.length === 0) return EXAMPLE;
  return `mcpServers:\n${entries.map(([name, server]) => renderServer(name, server)).join('')}`;
}

/** Members in lines of their own; their values are JSON, which is YAML as well. */
function renderServer(name: string, server: unknown): string {
  const head = `  ${writeKey(name)}:`;
  if (!isObject(server)) return `${head} ${JSON.stringify(server)}\n`;
  const lines = Object.entries(server).map(
    ([key, value]) => `    ${writeKey(key)}: ${writeValue(value)}\n`,
  );
  return `${head}\n${lines.join('')}`;
}

const writeKey = (key: string): string => (/^[a-z][\w-]*$/i.test(key) ? key : JSON.stringify(key));

const writeValue = (value: unknown): string =>
  typeof value === 'string' && /^[a-z][\w./@-]*$/i.test(value) && !RESERVED.test(value)
    ? value
    : JSON.stringify(value);

/** What YAML takes for something else than a text. */
const RESERVED = /^(true|false|null|yes|no|on|off|y|n)$/i;
