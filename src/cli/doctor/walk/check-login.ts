// From the client's authorization request to the provider's login page.
import { HOW_TO_CHANGE_SECRET } from '../../../store/seal/secrets.ts';
import { type Finding, failure, ok, unknown } from '../finding.ts';
import { checkAuthorizationRequest } from '../provider/check-authorization-request.ts';
import type { LoginOutcome } from './log-in.ts';
import type { Walk } from './walk.ts';

const CHECK = 'login';

export async function checkLogin(walk: Walk): Promise<readonly Finding[]> {
  const outcome = await walk.logIn();
  return outcome === undefined ? [] : [judge(outcome)];
}

function judge(outcome: LoginOutcome): Finding {
  switch (outcome.kind) {
    case 'at-provider':
      return ok(
        CHECK,
        `A login leads to ${new URL(outcome.url).host}${outcome.hasConsentPage ? ', by the consent page' : ''}.`,
      );
    case 'page-forgotten':
      return failure(
        'replicas.secret',
        'The consent page counts as expired a moment after it was shown.',
        {
          why: `The replica that got the answer cannot open what the one that showed the page has stored: their secrets differ. It says: ${outcome.said}`,
          setting: 'OAUTH_STATE_SECRET',
          remedy: `set the same list of secrets on all replicas, and the same REDIS_URL. ${HOW_TO_CHANGE_SECRET}`,
        },
      );
    case 'client-forgotten':
      return failure('replicas.store', 'The client that was registered a moment ago is unknown.', {
        why: `The replica that was asked has another store than the one that registered it. It says: ${outcome.said}`,
        setting: 'REDIS_URL',
        remedy:
          'several replicas need the same REDIS_URL: without it each keeps its clients and sessions for itself.',
      });
    case 'limited':
      return unknown(
        CHECK,
        'whether a login works: the gateway has received too many (429).',
        outcome.advice,
      );
    case 'refused':
      return failure(CHECK, `The gateway refuses a login: ${outcome.said}`, adviseOn(outcome.said));
  }
}

/** Words of the gateway's own answers. */
const ADVICE: readonly (readonly [sign: RegExp, setting: string, remedy: string])[] = [
  [
    /OAUTH_\w+_URL is not set/,
    'OAUTH_MODE',
    'set OAUTH_MODE=broker, which finds the address by itself, or set the variable that is named.',
  ],
  [
    /OAUTH_CLIENT_ID is not set/,
    'OAUTH_CLIENT_ID',
    'register a client for the gateway at the provider, and set its ID.',
  ],
  [
    /discovery document/,
    'OIDC_ISSUER',
    'check that the provider runs and that the gateway can reach it; its log has the reason.',
  ],
  [
    /another browser, or cookies/,
    'BASE_URL',
    'have the proxy in front pass Cookie and Set-Cookie headers on.',
  ],
  [/resource/, 'BASE_URL', 'check that BASE_URL is the address that clients are given.'],
];

function adviseOn(said: string) {
  const [, setting, remedy] = ADVICE.find(([sign]) => sign.test(said)) ?? [];
  return setting === undefined || remedy === undefined
    ? { remedy: "the gateway's log says why." }
    : { setting, remedy };
}

/** What the provider says of the request with which the browser comes to it. */
export async function checkProviderLogin({ logIn, probe }: Walk): Promise<readonly Finding[]> {
  const outcome = await logIn();
  if (outcome?.kind !== 'at-provider') return [];
  return checkAuthorizationRequest(outcome.url, probe, {
    what: 'The login leads to a provider that does not answer here.',
    setting: 'OIDC_ISSUER',
    remedy:
      "start the provider, or check that users' browsers can reach it; the gateway may reach it by another way.",
  });
}
