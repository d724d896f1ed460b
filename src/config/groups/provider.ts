// The OpenID provider: whose tokens are accepted. OIDC_PROVIDER gives defaults to other settings.
import {
  PROVIDER_PROFILES,
  PROVIDERS,
  type Provider,
  type ProviderLogin,
  type ProviderProfile,
  type ProviderQuirks,
} from '../provider-profiles.ts';
import { anyText, baseUrl as baseUrlRule, httpUrl, integer, list, oneOf } from '../rules.ts';
import { listOwnAudiences } from '../server-urls.ts';
import {
  type Default,
  defineSetting,
  type Read,
  readAll,
  requireValue,
  type ValuesOf,
} from '../setting.ts';
import { clientId } from './provider-client-id.ts';
import { serverSettings } from './server.ts';

const provider = defineSetting('OIDC_PROVIDER', oneOf(...PROVIDERS), {
  default: { value: 'generic' },
  summary: 'Which provider it is, for the defaults that it needs.',
  details:
    'It decides the defaults of OAUTH_ADDED_SCOPES, OAUTH_ADDED_PARAMETERS, OAUTH_CLIENT_AUTH, OIDC_AUDIENCE and OIDC_AUDIENCE_CLAIM, and the form that OIDC_ISSUER must have, unless it is http on this machine, which stands in for the provider. See [Providers](providers.md).',
});

export const readProfile = (read: Read): ProviderProfile => PROVIDER_PROFILES[read(provider)];

/** A default that differs between the profiles. What the documentation says of it follows from them. */
export function chooseByProvider<T>(
  select: (profile: ProviderProfile) => T,
  write: (value: T) => string = String,
): Default<T> {
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
  default: chooseByProvider((profile) => profile.audienceClaim),
  summary: 'The claim of a token that must name one of OIDC_AUDIENCE.',
  details:
    'With `client_id` a token must also have `token_use` `access`, as those of Amazon Cognito have.',
});

const CLIENT_NAMED = PROVIDERS.filter((name) => PROVIDER_PROFILES[name].audience === 'client_id');

/** Whether tokens name the client that they were issued to, and not the gateway. */
const namesClient = (read: Read): boolean =>
  read(audienceClaim) === 'client_id' || readProfile(read).audience === 'client_id';

/** Empty where it cannot be known. */
function computeAudience(read: Read): readonly string[] {
  const baseUrl = read(serverSettings.baseUrl);
  const id = read(clientId);
  if (!namesClient(read)) return listOwnAudiences(baseUrl);
  return id === undefined ? [] : [id];
}

const audiences = list(anyText, 'a comma-separated list of URLs or names');

const githubUrl = defineSetting('GITHUB_URL', baseUrlRule, {
  default: { value: 'https://github.com' },
  summary: 'The address of GitHub, or of your GitHub Enterprise Server.',
  details: 'Only with `OIDC_PROVIDER=github`, whose issuer it is.',
});

/** Of a provider whose tokens name none. */
const findImpliedIssuer: { readonly [Login in ProviderLogin]: (read: Read) => string | undefined } =
  {
    openid: () => undefined,
    github: (read) => read(githubUrl),
  };

const issuer = defineSetting('OIDC_ISSUER', httpUrl, {
  default: {
    text: '',
    exceptions: [['GITHUB_URL', 'with github']],
    compute: (read) => findImpliedIssuer[readProfile(read).login](read),
  },
  summary: 'The issuer, exactly as in the `iss` claim of its tokens.',
  details: 'Required, unless AUTH_REQUIRED=false and OAUTH_MODE=proxy.',
});

const tokenSettings = {
  audience: defineSetting('OIDC_AUDIENCE', audiences, {
    default: {
      text: '`<BASE_URL>/mcp`, `<BASE_URL>` and `<BASE_URL>/`',
      exceptions: [
        [
          'OAUTH_CLIENT_ID',
          `with ${CLIENT_NAMED.join(', ')}, and with OIDC_AUDIENCE_CLAIM=client_id`,
        ],
      ],
      compute: computeAudience,
    },
    summary: 'The audiences of which a token must name one.',
    details: 'In the claim that OIDC_AUDIENCE_CLAIM says.',
  }),
  audienceClaim,
  jwksUrl: defineSetting('OIDC_JWKS_URL', httpUrl, {
    default: { text: 'discovered', compute: () => undefined },
    summary: "The URL of the provider's key set.",
    details: 'If unset, the discovery document of OIDC_ISSUER says it.',
  }),
};

const checkSettings = {
  clockToleranceSeconds: defineSetting('OIDC_CLOCK_TOLERANCE_SECONDS', integer(0, 60), {
    default: { value: 5 },
    summary: "Seconds by which the provider's clock may differ.",
    details: 'For the claims `exp` and `nbf`.',
  }),
  signatureMemory: defineSetting('TOKEN_SIGNATURE_MEMORY', integer(0, 1_000_000), {
    default: { value: 4096 },
    summary: 'How many tokens are remembered as validly signed; 0 for none.',
    details:
      'The signature of a remembered token is not verified again. Its claims and times are checked on every request. See [Operations](operations/limits.md#remembered-signatures).',
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

/** Whether callers need a token, and of whom. */
export type AuthConfig = { readonly required: false } | RequiredAuthConfig;

/** §5: who is let in. */
export interface RequiredAuthConfig extends ValuesOf<typeof checkSettings> {
  readonly required: true;
  readonly provider: ProviderConfig;
}

export const readAuthConfig = (read: Read, found: ProviderConfig | undefined): AuthConfig =>
  read(serverSettings.authRequired)
    ? { required: true, provider: requireValue(found, issuer), ...readAll(checkSettings, read) }
    : { required: false };
