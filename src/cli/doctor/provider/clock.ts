// Whether two clocks agree: tokens are valid from one moment to another.
import { type Finding, type Found, failure, ok, unknown, warning } from '../finding.ts';
import { isDiscovered } from '../settings/check-discovery.ts';
import type { SettingsAtHand } from '../settings/settings-at-hand.ts';
import type { Walk } from '../walk/walk.ts';

/** Tokens live for minutes: with clocks further apart, none is ever accepted. */
const HOPELESS_SECONDS = 300;

const CHECK = 'clock';

/** `offset`: by how many seconds the provider's clock is ahead of the other; undefined where it did not tell. */
function judgeClock(
  offset: number | undefined,
  toleranceSeconds: number,
  other: 'this machine' | 'the gateway',
): Finding {
  if (offset === undefined)
    return unknown(CHECK, "whether the provider's clock is right: its answers have no Date.");
  const seconds = Math.abs(Math.round(offset));
  if (Math.abs(offset) <= toleranceSeconds)
    return ok(CHECK, `The clocks of the provider and of ${other} agree.`);
  return (seconds >= HOPELESS_SECONDS ? failure : warning)(CHECK, {
    what: `The provider's clock is ${seconds} s ${offset > 0 ? 'ahead of' : 'behind'} that of ${other}.`,
    why: `Tokens would count as ${offset > 0 ? 'not valid yet' : 'expired too early'}; ${toleranceSeconds} s are allowed.`,
    setting: 'OIDC_CLOCK_TOLERANCE_SECONDS',
    remedy: 'set the clock of the machine that is wrong (NTP). The setting allows 60 s at most.',
  });
}

/** By the Date of the provider's answers. */
export async function checkClock({ access, config, clocks }: SettingsAtHand): Promise<Found> {
  const { auth } = config;
  if (access === undefined || !auth.required || !(await isDiscovered(access))) return [];
  const { issuer, jwksUrl } = access.provider;
  const offset = clocks.readOffset(issuer) ?? clocks.readOffset(jwksUrl ?? issuer);
  return judgeClock(offset, auth.clockToleranceSeconds, 'this machine');
}

/** The default of OIDC_CLOCK_TOLERANCE_SECONDS: what is set cannot be seen from outside. */
const TOLERANCE_SECONDS = 5;

/** The provider's clock against the gateway's, both seen from here. */
export async function checkWalkClock({ baseUrl, clocks, logIn }: Walk): Promise<Found> {
  const login = await logIn();
  if (login?.kind !== 'at-provider') return [];
  const provider = clocks.readOffset(login.url);
  const gateway = clocks.readOffset(baseUrl);
  const offset = provider === undefined || gateway === undefined ? undefined : provider - gateway;
  return judgeClock(offset, TOLERANCE_SECONDS, 'the gateway');
}
