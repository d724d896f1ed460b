// A catalogue behind a gateway of its own, and a client of it, for one test or a file of them.

import { generateKeyPairSync, sign } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../config/load.ts';
import { DefinitionError } from '../errors/gateway-error.ts';
import { createGateway } from '../gateway/gateway.ts';
import type { UserContext } from '../http/endpoint/message.ts';
import { parseKeySet } from '../logins/auth/jwk.ts';
import type { KeySet } from '../logins/auth/key-set.ts';
import type { Arguments, Caller, Catalog } from '../mcp/catalog/catalog.ts';
import type {
  PromptDescription,
  PromptResult,
  ResourceDescription,
  ResourceResult,
  ResourceTemplateDescription,
  SkillDescription,
  ToolDescription,
  ToolResult,
} from '../mcp/catalog/content.ts';
import { systemClock } from '../platform/clock.ts';
import { createSendRequest, type QuestionHandlers, type SendRequest } from './requests.ts';

/** Who calls. `claims` are further claims of the token. */
export type TestUser = Partial<Omit<UserContext, 'token'>>;

export interface ConnectOptions {
  /** Who is logged in; `sub` is `test-user` unless given. Without it nobody is, and tools get no `user`. */
  readonly user?: TestUser;
  /** Answers to what tools ask. Without one for a kind of question the client cannot be asked it. */
  readonly answer?: QuestionHandlers;
}

/** Each method throws a {@link CallError} where the gateway answers with an error. */
export interface TestClient {
  listTools(): Promise<readonly ToolDescription[]>;
  /** What the tool returns; `isError` is true where it reports a failure, and where the arguments do not fit. */
  callTool(name: string, args?: Arguments): Promise<ToolResult>;
  listPrompts(): Promise<readonly PromptDescription[]>;
  getPrompt(name: string, args?: Readonly<Record<string, string>>): Promise<PromptResult>;
  listResources(): Promise<readonly ResourceDescription[]>;
  listResourceTemplates(): Promise<readonly ResourceTemplateDescription[]>;
  listSkills(): Promise<readonly SkillDescription[]>;
  readResource(uri: string): Promise<ResourceResult>;
  /** Ends the gateway. */
  close(): Promise<void>;
}

/**
 * Starts a gateway that serves the catalogue on a free port of this machine, and resolves to a client of it. The user's
 * token is checked as in production; rate limits are off.
 *
 * @throws DefinitionError for what is no catalogue.
 */
export async function connect(
  catalog: Catalog,
  { user, answer = {} }: ConnectOptions = {},
): Promise<TestClient> {
  // What JavaScript does not check.
  if (typeof catalog?.callTool !== 'function') {
    throw new DefinitionError(
      'connect takes a catalogue: pass createLocalCatalog({ tools: [ … ] }), or the default export of your catalogue file.',
    );
  }
  const login = createTestLogin();
  const folder = await mkdtemp(join(tmpdir(), 'postern-testing-'));
  const settings = {
    HOST: '127.0.0.1',
    DATA_DIR: folder,
    LOG_LEVEL: 'error',
    METRICS_ENABLED: 'false',
    RATE_LIMIT_ENABLED: 'false',
    OAUTH_ENABLED: 'false',
    ...(user === undefined
      ? { AUTH_REQUIRED: 'false' }
      : { OIDC_ISSUER: ISSUER, OIDC_AUDIENCE: AUDIENCE }),
  };
  const config = loadConfig(settings);
  // The system picks a free one.
  const server = { ...config.server, port: 0 };
  const gateway = await createGateway({ ...config, server }, { catalog, keySet: login.keySet });
  const port = await gateway.listen();

  const send = createSendRequest({
    url: `http://127.0.0.1:${port}/mcp`,
    token: user && login.issueToken(toClaims(user)),
    answer,
    findMirroredParams: async (tool) => catalog.mirroredParams(tool, NOBODY),
  });

  return {
    listTools: () => listAll(send, 'tools/list', 'tools'),
    callTool: (name, args = {}) => send('tools/call', { name, arguments: args }, name),
    listPrompts: () => listAll(send, 'prompts/list', 'prompts'),
    getPrompt: (name, args = {}) => send('prompts/get', { name, arguments: args }, name),
    listResources: () => listAll(send, 'resources/list', 'resources'),
    listResourceTemplates: () => listAll(send, 'resources/templates/list', 'resourceTemplates'),
    listSkills: () => listAll(send, 'skills/list', 'skills'),
    readResource: (uri) => send('resources/read', { uri }, uri),
    async close() {
      await gateway.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const toClaims = ({ sub = 'test-user', emailVerified, claims, ...others }: TestUser) => ({
  sub,
  ...others,
  ...(emailVerified !== undefined && { email_verified: emailVerified }),
  ...claims,
});

/** Headers of arguments depend on the tool alone, wherever its author is the catalogue's. */
const NOBODY: Caller = {
  user: undefined,
  session: undefined,
  client: { elicitation: false, sampling: false, roots: false },
};

async function listAll<Item>(
  send: SendRequest,
  method: string,
  member: string,
): Promise<readonly Item[]> {
  const items: Item[] = [];
  let cursor: string | undefined;
  do {
    const page = await send<Readonly<Record<string, Item[]>> & { readonly nextCursor?: string }>(
      method,
      cursor === undefined ? {} : { cursor },
    );
    items.push(...(page[member] ?? []));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return items;
}

interface TestLogin {
  readonly keySet: KeySet;
  /** A JWT with these claims, good for an hour. */
  issueToken(claims: Readonly<Record<string, unknown>>): string;
}

/** Names that nobody can register (RFC 2606 §2). */
const ISSUER = 'https://provider.test';
const AUDIENCE = 'https://gateway.test/mcp';

const HOUR_SECONDS = 3600;
const HEADER = { alg: 'ES256', kid: 'test', typ: 'JWT' };

function createTestLogin(): TestLogin {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: HEADER.kid, alg: HEADER.alg };
  const { usable: keys } = parseKeySet(Buffer.from(JSON.stringify({ keys: [jwk] })));

  return {
    keySet: {
      start() {},
      waitForKeys: async () => {},
      find: () => keys,
      findAfterRefresh: async () => keys,
      isFetched: true,
      describe: () => ({
        url: undefined,
        keys: [],
        fetchedAt: undefined,
        nextFetchAt: undefined,
        problem: undefined,
      }),
      close() {},
    },
    issueToken(claims) {
      const iat = Math.floor(systemClock.now() / 1000);
      const payload = { iss: ISSUER, aud: AUDIENCE, iat, exp: iat + HOUR_SECONDS, ...claims };
      const signed = `${encode(HEADER)}.${encode(payload)}`;
      const key = { key: privateKey, dsaEncoding: 'ieee-p1363' } as const;
      return `${signed}.${sign('sha256', Buffer.from(signed), key).toString('base64url')}`;
    },
  };
}

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
