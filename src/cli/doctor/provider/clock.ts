// Whether two clocks agree: tokens are valid from one moment to another.
import { type Finding, type Found, failure, ok, unknown, warning } from '../finding.ts';
import { isDiscovered } from '../settings/check-discovery.ts';
import type { SettingsAtHand } from '../settings/settings-at-hand.ts';
import type { Walk } from '../walk/walk.ts';

/** Tokens live for minutes: with clocks further apart, none is ever accepted. */
const HOPELESS_SECONDS = 300;

interface ComparedClocks {
  /** By how many seconds the provider's clock is ahead; undefined where it did not tell. */
  readonly offset: number | undefined;
  readonly toleranceSeconds: number;
  /** `this machine`, `the gateway`. */
  readonly other: string;
}

const CHECK = 'clock';

function judgeClock({ offset, toleranceSeconds, other }: ComparedClocks): Finding {
  if (offset === undefined)
    return unknown(CHECK, "whether the provider's clock is right: its answers have no Date.");
  const seconds = Math.abs(Math.round(offset));
  if (Math.abs(offset) <= toleranceSeconds)
    return ok(CHECK, `The clocks of the provider and of ${other} agree.`);
  const what = `The provider's clock is ${seconds} s ${offset > 0 ? 'ahead of' : 'behind'} that of ${other}.`;
  const advice = {
    why: `Tokens would count as ${offset > 0 ? 'not valid yet' : 'expired too early'}; ${toleranceSeconds} s are allowed.`,
    setting: 'OIDC_CLOCK_TOLERANCE_SECONDS',
    remedy: 'set the clock of the machine that is wrong (NTP). The setting allows 60 s at most.',
  };
  return (seconds >= HOPELESS_SECONDS ? failure : warning)(CHECK, { what, ...advice });
}

/** By the Date of the provider's answers. */
export async function checkClock({
  access,
  config: { auth },
  clocks,
}: SettingsAtHand): Promise<Found> {
  if (access === undefined || !auth.required || !(await isDiscovered(access))) return [];
  const { issuer, jwksUrl } = access.provider;
  const offset = [issuer, ...(jwksUrl === undefined ? [] : [jwksUrl])]
    .map((url) => clocks.readOffset(new URL(url).origin))
    .find((one) => one !== undefined);
  return judgeClock({
    offset,
    toleranceSeconds: auth.clockToleranceSeconds,
    other: 'this machine',
  });
}

/** The default of OIDC_CLOCK_TOLERANCE_SECONDS: what is set cannot be seen from outside. */
const TOLERANCE_SECONDS = 5;

/** The provider's clock against the gateway's, both seen from here. */
export async function checkWalkClock({ baseUrl, clocks, logIn }: Walk): Promise<Found> {
  const login = await logIn();
  if (login?.kind !== 'at-provider') return [];
  const provider = clocks.readOffset(new URL(login.url).origin);
  const gateway = clocks.readOffset(new URL(baseUrl).origin);
  const offset = provider === undefined || gateway === undefined ? undefined : provider - gateway;
  return judgeClock({ offset, toleranceSeconds: TOLERANCE_SECONDS, other: 'the gateway' });
}
