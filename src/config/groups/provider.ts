// Settings of the OpenID provider whose tokens are accepted. OIDC_PROVIDER selects the defaults of the other settings.

import { isSafeForTokens } from '../../platform/address.ts';
import {
  PROVIDER_PROFILES,
  PROVIDERS,
  type Provider,
  type ProviderLogin,
  type ProviderProfile,
  type ProviderQuirks,
} from '../provider-profiles.ts';
import {
  anyText,
  baseUrl as baseUrlRule,
  flag,
  httpUrl,
  integer,
  listOf,
  matching,
  oneOf,
  type Rule,
} from '../rules.ts';
import { listOwnAudiences } from '../server-urls.ts';
import {
  type ComputedDefault,
  defineSetting,
  type Read,
  readAll,
  requireValue,
  type ValuesOf,
} from '../setting.ts';
import { serverSettings } from './server.ts';

const provider = defineSetting('OIDC_PROVIDER', oneOf(...PROVIDERS), {
  default: 'generic',
  summary: 'The kind of provider, which sets suitable defaults.',
  details:
    'It sets the defaults of OAUTH_ADDED_SCOPES, OAUTH_ADDED_PARAMETERS, OAUTH_CLIENT_AUTH, OIDC_AUDIENCE and OIDC_AUDIENCE_CLAIM, and the form that OIDC_ISSUER must have, unless that is http on this machine (a stand-in for the provider). See [Providers](providers.md).',
});

export const readProfile = (read: Read): ProviderProfile => PROVIDER_PROFILES[read(provider)];

/** A default that depends on the profile. The documentation of the exceptions is generated from the profiles. */
export function chooseByProvider<T>(
  select: (profile: ProviderProfile) => T,
  write: (value: T) => string = String,
): ComputedDefault<T> {
  const writeFor = (name: Provider) => `\`${write(select(PROVIDER_PROFILES[name]))}\``;
  const text = writeFor('generic');
  const others = [...new Set(PROVIDERS.map(writeFor))].filter((other) => other !== text);
  return {
    compute: (read) => select(readProfile(read)),
    text,
    exceptions: others.map((other) => {
      const names = PROVIDERS.filter((name) => writeFor(name) === other);
      return [other, `with ${names.join(', ')}`];
    }),
  };
}

const claims = oneOf('aud', 'client_id');

const audienceClaim = defineSetting('OIDC_AUDIENCE_CLAIM', claims, {
  computed: chooseByProvider((profile) => profile.audienceClaim),
  summary: 'The claim of a token that must contain one of OIDC_AUDIENCE.',
  details: 'With `client_id` a token must also have `token_use` `access`, as in Amazon Cognito.',
});

const CLIENT_NAMED = PROVIDERS.filter((name) => PROVIDER_PROFILES[name].audience === 'client_id');

const audiences = listOf(anyText, 'a comma-separated list of URLs or names');

const githubUrl = defineSetting('GITHUB_URL', baseUrlRule, {
  default: 'https://github.com',
  summary: 'The URL of GitHub, or of your GitHub Enterprise Server.',
  details: 'Only with `OIDC_PROVIDER=github`, where it is the issuer.',
});

/** The issuer of a provider whose tokens do not name one. */
const findImpliedIssuer: { readonly [Login in ProviderLogin]: (read: Read) => string | undefined } =
  { openid: () => undefined, github: (read) => read(githubUrl) };

const issuer = defineSetting('OIDC_ISSUER', httpUrl, {
  computed: {
    text: '',
    exceptions: [['GITHUB_URL', 'with github']],
    compute: (read) => findImpliedIssuer[readProfile(read).login](read),
  },
  summary: 'The issuer, exactly as in the `iss` claim of the provider’s tokens.',
  details: 'Required, unless AUTH_REQUIRED=false and OAUTH_MODE=proxy.',
});

const tokenSettings = {
  audience: defineSetting('OIDC_AUDIENCE', audiences, {
    computed: {
      text: '`<BASE_URL>/mcp`, `<BASE_URL>` and `<BASE_URL>/`',
      exceptions: [
        [
          'OAUTH_CLIENT_ID',
          `with ${CLIENT_NAMED.join(', ')}, and with OIDC_AUDIENCE_CLAIM=client_id`,
        ],
      ],
      compute(read) {
        const id = read(clientId);
        // True if the audience of tokens is the client that they were issued to, instead of the gateway.
        const namesClient =
          read(audienceClaim) === 'client_id' || readProfile(read).audience === 'client_id';
        if (!namesClient) return listOwnAudiences(read(serverSettings.baseUrl));
        // Empty if the client ID is unknown.
        return id === undefined ? [] : [id];
      },
    },
    summary: 'The audiences, one of which a token must name.',
    details: 'In the claim that OIDC_AUDIENCE_CLAIM names.',
  }),
  audienceClaim,
  jwksUrl: defineSetting('OIDC_JWKS_URL', httpUrl, {
    computed: { text: 'discovered', compute: () => undefined },
    summary: "The URL of the provider's key set.",
    details: 'If unset, it is read from the discovery document of OIDC_ISSUER.',
  }),
};

const checkSettings = {
  clockToleranceSeconds: defineSetting('OIDC_CLOCK_TOLERANCE_SECONDS', integer(0, 60), {
    default: 5,
    summary: "Seconds by which the provider's clock may differ.",
    details: 'For the claims `exp` and `nbf`.',
  }),
  signatureMemory: defineSetting('TOKEN_SIGNATURE_MEMORY', integer(0, 1_000_000), {
    default: 4096,
    summary: 'The number of tokens whose valid signature is remembered; 0 for none.',
    details:
      'The signature of a remembered token is not verified again. Its claims and timestamps are checked on every request. See [Operations](operations/limits.md#remembered-signatures).',
  }),
};

export const providerSettings = { provider, issuer, githubUrl, ...tokenSettings, ...checkSettings };

export interface ProviderConfig extends ValuesOf<typeof tokenSettings> {
  readonly name: Provider;
  readonly issuer: string;
  readonly login: ProviderLogin;
  readonly quirks: ProviderQuirks;
}

/** Undefined without `OIDC_ISSUER`. */
export function readProviderConfig(read: Read): ProviderConfig | undefined {
  const given = read(issuer);
  if (given === undefined) return undefined;
  const { login, quirks } = readProfile(read);
  return { name: read(provider), issuer: given, login, ...readAll(tokenSettings, read), quirks };
}

/** §5: requirements that callers have to meet. */
export interface RequiredAuthConfig extends ValuesOf<typeof checkSettings> {
  readonly required: true;
  readonly provider: ProviderConfig;
}

/** The token that callers need, if any, and its issuer. */
export const readAuthConfig = (
  read: Read,
  found: ProviderConfig | undefined,
): { readonly required: false } | RequiredAuthConfig =>
  read(serverSettings.authRequired)
    ? { required: true, provider: requireValue(found, issuer), ...readAll(checkSettings, read) }
    : { required: false };

// OAUTH_MODE, on which the defaults of many other settings depend.

export type OAuthMode = 'proxy' | 'broker';

export const mode = defineSetting('OAUTH_MODE', oneOf('proxy', 'broker'), {
  default: 'proxy',
  summary: 'How clients log in: `broker` (recommended) or `proxy`.',
  details:
    'With `broker` the gateway is itself an issuer, and the provider knows one redirect URI, `<BASE_URL>/oauth/callback`. With `proxy` clients are redirected to the provider, which must know the redirect URI of each. See [Modes](modes.md).',
});

export const isBrokerMode = (read: Read): boolean => read(mode) === 'broker';

/** A default that depends on the mode. */
export const chooseByMode = <const T>(
  values: Readonly<Record<OAuthMode, T>>,
  write: (value: T) => string = String,
): ComputedDefault<T> => ({
  compute: (read) => values[read(mode)],
  text: `\`${write(values.proxy)}\``,
  exceptions: [[`\`${write(values.broker)}\``, 'in broker mode']],
});

// OAUTH_CLIENT_ID, the audience of some tokens.

const notRegistered = matching(
  /^(?!svc-)/,
  'a client id that does not begin with svc-, the prefix of registered clients',
);

export const clientId = defineSetting('OAUTH_CLIENT_ID', notRegistered, {
  summary: 'The client that you registered with the provider for the gateway.',
  details:
    'The gateway’s clients log in through it. Required with OAUTH_MODE=broker. In proxy mode, registered clients cannot log in without it.',
});

// The client registered with the provider for the gateway, and the endpoints it uses.

/** The gateway uses this client on behalf of its own clients. */
const ownClientSettings = {
  id: clientId,
  secret: defineSetting('OAUTH_CLIENT_SECRET', anyText, {
    summary: 'The secret of that client.',
    details: "It is sent to the provider only for the gateway's own clients.",
    isSecret: true,
  }),
  authMethod: defineSetting('OAUTH_CLIENT_AUTH', oneOf('post', 'basic'), {
    computed: chooseByProvider((profile) => profile.clientAuth),
    summary: 'How the secret is sent.',
    details: '`post` is `client_secret_post`, `basic` is `client_secret_basic`.',
  }),
};

/** In broker mode, endpoints that are undefined come from the discovery document. */
const endpointSettings = {
  authorizationUrl: defineSetting('OAUTH_AUTHORIZATION_URL', httpUrl, {
    summary: "The provider's authorization endpoint; discovered in broker mode.",
    details:
      "In proxy mode no user can log in without it: `/oauth/authorize` answers `server_error`. In broker mode, set it only to override the discovery document. A query string in it is kept and overrides the client's parameters (for example `scope`).",
  }),
  tokenUrl: defineSetting('OAUTH_TOKEN_URL', httpUrl, {
    summary: "The provider's token endpoint; discovered in broker mode.",
    details:
      'In proxy mode no user can log in without it: `/oauth/token` answers `server_error`. In broker mode, set it only to override the discovery document.',
  }),
  revocationUrl: defineSetting('OAUTH_REVOCATION_URL', httpUrl, {
    summary: "The provider's revocation endpoint; discovered in broker mode.",
    details:
      'RFC 7009. In proxy mode `/oauth/revoke` answers `server_error` without it. In broker mode, set it only to override the discovery document.',
  }),
};

export const providerClientSettings = { ...ownClientSettings, ...endpointSettings };

export type ProviderClientConfig = ValuesOf<typeof ownClientSettings>;

export const readProviderClient = (read: Read) => ({
  providerClient: readAll(ownClientSettings, read),
  endpoints: readAll(endpointSettings, read),
});

// ID-JAG: assertions in which a company's identity provider says what a client may do for a user, without a login in the browser.

/** Limited, since each issuer has a discovery document and a key set that are fetched in the background. */
const MAX_ISSUERS = 20;

const issuers: Rule<readonly string[]> = {
  parse(text) {
    const items = text.split(',').map((item) => item.trim());
    const areRight = items.every(
      (item) => httpUrl.parse(item) !== undefined && isSafeForTokens(item),
    );
    return areRight && items.length <= MAX_ISSUERS ? [...new Set(items)] : undefined;
  },
  allowed: `a comma-separated list of at most ${MAX_ISSUERS} https URLs (http on this machine), each exactly as in the iss claim`,
};

export const idJagSettings = {
  isEnabled: defineSetting('ID_JAG', flag, {
    default: false,
    summary:
      'Accept assertions from a company’s identity provider instead of a login in the browser (ID-JAG, Enterprise-Managed Authorization).',
    details:
      'A client that the configuration file names, or whose metadata document has a key, then gets a token for a user at once. See [Enterprises](enterprise.md).',
    mode: 'broker',
  }),
  issuers: defineSetting('ID_JAG_ISSUERS', issuers, {
    computed: {
      text: 'OIDC_ISSUER',
      compute: (read) => {
        const one = read(issuer);
        return one === undefined ? [] : [one];
      },
    },
    summary: 'The issuers whose assertions are accepted.',
    details:
      'The gateway trusts these issuers to identify users: list only your own. Each has its own discovery document and keys. Users of different issuers are different users, even if they have the same `sub`.',
    mode: 'broker',
  }),
};
