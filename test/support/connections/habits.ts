// In what protected servers differ: one value of this type for each of them, and what stands beside it behaves as it says.

export interface ServerHabits {
  readonly title: string;
  /** Members of `auth` that an operator has to write for it, beside the type. */
  readonly auth: (server: WrittenFor) => Readonly<Record<string, unknown>>;

  /** Whether the 401 says where the metadata is (RFC 9728 §5.1). */
  readonly namesMetadata: boolean;
  readonly resourceMetadata: ResourceMetadata;
  /** Members over those of RFC 9728. */
  readonly resourceDocument: Document;
  /** What `scopes_supported` of the resource says, and what the 401 asks for; undefined: nothing. */
  readonly resourceScopes: readonly string[] | undefined;
  /** Whether the challenge repeats the token that is refused. */
  readonly repeatsTokens: boolean;
  /** Whether initialize and tools/list are answered without a token. */
  readonly listsToAnybody: boolean | 'but ping';

  /** What the issuer has after host and port. */
  readonly issuerPath: string;
  /** At which of the places that MCP names the authorization server's metadata is. */
  readonly metadataPlace: 'oauth' | 'openid inserted' | 'openid appended' | 'nowhere';
  /** Members over those of RFC 8414. */
  readonly document: Document;
  readonly registration: 'open' | 'none' | 'allow-list';
  readonly takesClientDocuments: boolean;
  readonly clientAuth: readonly ('none' | 'post' | 'basic' | 'private_key_jwt')[];
  /** The one audience of assertions that it takes. */
  readonly assertionAudience: 'issuer' | 'endpoint';
  /** RFC 9207, in what comes back to the client. */
  readonly iss: 'right' | 'wrong' | 'none';
  /** RFC 8707. */
  readonly resource: 'needed' | 'ignored' | 'refused';
  /** Those that it grants of the ones asked for; undefined: all. */
  readonly grantsOnly: readonly string[] | undefined;
  /** Seconds; undefined where tokens live until they are revoked. */
  readonly expiresIn: number | undefined;
  readonly hasRefreshTokens: boolean;
  readonly usedRefreshToken: UsedRefreshToken;
  /** Whether a second refresh of a login, while one is under way, is refused by `invalid_grant`. */
  readonly forbidsParallelRefresh: boolean;
  /** What a good answer of the token endpoint has beside, or in another form. */
  renderTokens(answer: Document): Document;
  renderRefusal(refusal: TokenRefusal): { readonly status: number; readonly body: Document };
}

export type Document = Readonly<Record<string, unknown>>;

/** What the lines of the configuration file have to name. */
export interface WrittenFor {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
}

export interface TokenRefusal {
  readonly status: number;
  readonly error: string;
  readonly isRefresh: boolean;
  /** The body of the request, which some answers repeat. */
  readonly asked: string;
}

export type ResourceMetadata =
  | 'here'
  /** At the place that the challenge names, and at no well-known one. */
  | 'elsewhere'
  | 'by redirect'
  | 'nowhere'
  | 'too long'
  | 'hanging'
  | 'of another resource'
  | 'a page';

export type UsedRefreshToken =
  /** It stays, and the answer has no other. */
  | 'is kept'
  /** The answer has another, and it stays good, too. */
  | 'stays good'
  | 'is refused'
  /** It is taken for stolen: nothing that came of the login is good any more. */
  | 'ends the login';

/** A server that keeps to MCP's authorization, as the servers of the official SDKs do. */
export const KEEPS_TO_MCP: ServerHabits = {
  title: 'a server that keeps to MCP',
  auth: () => ({}),
  namesMetadata: true,
  resourceMetadata: 'here',
  resourceDocument: {},
  resourceScopes: ['mcp:read'],
  repeatsTokens: false,
  listsToAnybody: false,
  issuerPath: '',
  metadataPlace: 'oauth',
  document: {},
  registration: 'open',
  takesClientDocuments: false,
  clientAuth: ['none', 'post', 'basic'],
  assertionAudience: 'issuer',
  iss: 'right',
  resource: 'needed',
  grantsOnly: undefined,
  expiresIn: 3600,
  hasRefreshTokens: true,
  usedRefreshToken: 'is refused',
  forbidsParallelRefresh: false,
  renderTokens: (answer) => answer,
  renderRefusal: ({ status, error }) => ({ status, body: { error } }),
};

const withClient = ({ clientId, clientSecret }: WrittenFor) => ({ clientId, clientSecret });

/** GitHub: https://github.com/github/github-mcp-server/blob/main/docs/host-integration.md; the answers, providers/github.ts. */
export const GITHUB: ServerHabits = {
  ...KEEPS_TO_MCP,
  title: 'GitHub, an OAuth app',
  auth: withClient,
  registration: 'none',
  clientAuth: ['post'],
  iss: 'none',
  resource: 'ignored',
  expiresIn: undefined,
  hasRefreshTokens: false,
  renderTokens: ({ scope, ...answer }) => ({
    ...answer,
    token_type: 'bearer',
    scope: String(scope).replaceAll(' ', ','),
  }),
  renderRefusal: ({ error, isRefresh }) => ({
    status: 200,
    body: {
      error: GITHUB_ERRORS[isRefresh ? `${error} of a refresh` : error] ?? error,
      error_description: 'The token or the code passed is incorrect or expired.',
    },
  }),
};

const GITHUB_ERRORS: Readonly<Record<string, string>> = {
  invalid_grant: 'bad_verification_code',
  'invalid_grant of a refresh': 'bad_refresh_token',
  invalid_client: 'incorrect_client_credentials',
};

/** A GitHub App, whose tokens expire. */
export const GITHUB_APP: ServerHabits = {
  ...GITHUB,
  title: 'GitHub, an app whose tokens expire',
  expiresIn: 28_800,
  hasRefreshTokens: true,
  renderTokens: (answer) => ({ ...answer, scope: '', refresh_token_expires_in: 15_897_600 }),
};

/** Slack: the well-known address leads elsewhere, so its endpoints are written out; clients are made at its site. */
export const SLACK: ServerHabits = {
  ...KEEPS_TO_MCP,
  title: 'Slack',
  auth: (server) => ({
    ...withClient(server),
    authorizationServer: {
      authorizationUrl: `${server.issuer}/authorize`,
      tokenUrl: `${server.issuer}/token`,
    },
    resource: false,
  }),
  namesMetadata: false,
  resourceMetadata: 'by redirect',
  registration: 'none',
  clientAuth: ['post'],
  iss: 'none',
  resource: 'ignored',
  renderTokens: (answer) => ({ ok: true, ...answer }),
  renderRefusal: ({ error, isRefresh }) => ({
    status: 200,
    body: {
      ok: false,
      error: error === 'invalid_grant' && isRefresh ? 'token_expired' : error,
    },
  }),
};

/** Figma: it registers those whose name is on its list. */
export const FIGMA: ServerHabits = {
  ...KEEPS_TO_MCP,
  title: 'Figma',
  auth: withClient,
  registration: 'allow-list',
};

/** Notion, Atlassian, Linear: each refresh brings another token, and two at once are refused. */
export const ROTATING: ServerHabits = {
  ...KEEPS_TO_MCP,
  title: 'Notion, Atlassian, Linear',
  usedRefreshToken: 'ends the login',
  forbidsParallelRefresh: true,
};

/** Entra: AADSTS9010010 for `resource`, discovery with the tenant, no registration, `expires_in` as text at its first endpoint. */
export const ENTRA: ServerHabits = {
  ...KEEPS_TO_MCP,
  title: 'Entra',
  auth: (server) => ({ ...withClient(server), resource: false }),
  registration: 'none',
  issuerPath: '/tenant/v2.0',
  metadataPlace: 'openid appended',
  iss: 'none',
  resource: 'refused',
  usedRefreshToken: 'stays good',
  renderTokens: (answer) => ({ ...answer, expires_in: String(answer.expires_in) }),
};

/** Sentry, Stripe, Cloudflare: the library of Cloudflare's workers. Public clients, tokens rotate, the one before stays good. */
export const WORKERS: ServerHabits = {
  ...KEEPS_TO_MCP,
  title: 'Sentry, Cloudflare',
  namesMetadata: false,
  iss: 'none',
  resource: 'ignored',
  usedRefreshToken: 'stays good',
};

/** Google: refresh tokens stay, and come only with `access_type=offline`. */
export const GOOGLE: ServerHabits = {
  ...KEEPS_TO_MCP,
  title: 'Google',
  auth: (server) => ({
    ...withClient(server),
    parameters: { access_type: 'offline', prompt: 'consent' },
  }),
  registration: 'none',
  metadataPlace: 'openid appended',
  resource: 'ignored',
  usedRefreshToken: 'is kept',
};

/** RFC 7523: a client proves by its key who it is. */
const WANTS_KEYS: ServerHabits = {
  ...KEEPS_TO_MCP,
  title: 'a server that wants keys of its clients',
  clientAuth: ['private_key_jwt'],
};

/** RFC 7523 §3 has the token endpoint, and some take nothing else but the endpoint that is asked. */
const WANTS_KEYS_FOR_ENDPOINTS: ServerHabits = {
  ...WANTS_KEYS,
  title: 'a server that wants assertions for its endpoints',
  auth: () => ({ assertionAudience: 'endpoint' }),
  assertionAudience: 'endpoint',
};

export const SERVERS: readonly ServerHabits[] = [
  KEEPS_TO_MCP,
  GITHUB,
  GITHUB_APP,
  SLACK,
  FIGMA,
  ROTATING,
  ENTRA,
  WORKERS,
  GOOGLE,
  WANTS_KEYS,
  WANTS_KEYS_FOR_ENDPOINTS,
];
