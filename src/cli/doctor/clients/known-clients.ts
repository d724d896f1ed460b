// The clients of docs/clients.md, and what each needs of a gateway to log in.
import type { Probe } from '../instruments.ts';
import { askAuthorization } from '../provider/authorization-request.ts';

export interface KnownClient {
  /** As docs/clients.md names it. */
  readonly name: string;
  /** `document`: by a client ID metadata document where that is offered, else it registers. */
  readonly becomesKnown: 'registers' | 'document' | 'client ID';
  /** Whether it compares the issuer of the metadata with its address; undefined where that is not known. */
  readonly comparesIssuer: boolean | undefined;
  /** Where the browser comes back to it; the port of a loopback address is one of many. */
  readonly redirectUri: string;
  /** Its servers connect to the gateway, not the user's machine. */
  readonly isHosted?: true;
}

const LOOPBACK = 'http://127.0.0.1:33418/callback';
const LOCALHOST = 'http://localhost:33418/callback';

/** One that registers, and waits on a port of its machine. */
const program = (
  name: string,
  { comparesIssuer, ...other }: Partial<KnownClient> = {},
): KnownClient => ({
  name,
  becomesKnown: 'registers',
  comparesIssuer,
  redirectUri: LOOPBACK,
  ...other,
});

const programs = (...names: readonly string[]) => names.map((name) => program(name));

/** Those that were tried, in the order of the table there, then those that were not. */
export const KNOWN_CLIENTS: readonly KnownClient[] = [
  program('TypeScript SDK 1.x', { comparesIssuer: false }),
  program('TypeScript SDK 2.x', { comparesIssuer: true }),
  ...programs('Python SDK 1.x', 'Python SDK 2.x', 'FastMCP'),
  program('Claude Code', { becomesKnown: 'document', redirectUri: LOCALHOST }),
  program('Codex', { becomesKnown: 'document' }),
  program('Gemini CLI', { redirectUri: LOCALHOST }),
  ...programs('OpenCode', 'Kilo CLI', 'Copilot CLI'),
  program('Qwen Code', { redirectUri: LOCALHOST }),
  ...programs('Cline CLI', 'Continue CLI'),
  program('Inspector', { redirectUri: LOCALHOST }),
  program('mcp-remote', { redirectUri: LOCALHOST }),
  ...programs('mcporter', 'mcpc', 'mcp-cli', 'AI SDK', 'LangChain.js'),
  program('Mastra', { becomesKnown: 'client ID' }),
  ...programs('OpenAI Agents JS', 'LangChain', 'Pydantic AI', 'OpenAI Agents', 'LlamaIndex'),
  ...programs('mcp-use', 'Strands', 'Google ADK'),
  program('Claude (web, desktop, mobile)', {
    becomesKnown: 'document',
    redirectUri: 'https://claude.ai/api/mcp/auth_callback',
    isHosted: true,
  }),
  program('ChatGPT', {
    becomesKnown: 'document',
    redirectUri: 'https://chatgpt.com/connector_platform_oauth_redirect',
    isHosted: true,
  }),
  program('Cursor', { redirectUri: 'cursor://anysphere.cursor-mcp/oauth/callback' }),
  program('VS Code', { becomesKnown: 'document', redirectUri: 'http://127.0.0.1:33418/' }),
];

/**
 * Redirect URIs of known clients that the provider does not know, where it sees those and not the gateway's own: in proxy
 * mode. `url` is an authorization request to it, `baseUrl` that of the gateway.
 *
 * @throws FetchError
 */
export async function findUnknownRedirectUris(
  url: string,
  { baseUrl, probe }: { readonly baseUrl: string; readonly probe: Probe },
): Promise<ReadonlySet<string>> {
  const sent = new URL(url).searchParams.get('redirect_uri') ?? '';
  const unknownUris = new Set<string>();
  if (sent === `${baseUrl}/oauth/callback`) return unknownUris;
  for (const redirectUri of new Set(KNOWN_CLIENTS.map((client) => client.redirectUri))) {
    const asked = new URL(url);
    asked.searchParams.set('redirect_uri', redirectUri);
    const { kind } = await askAuthorization(asked.href, probe);
    if (kind === 'redirect-uri-unknown') unknownUris.add(redirectUri);
  }
  return unknownUris;
}
