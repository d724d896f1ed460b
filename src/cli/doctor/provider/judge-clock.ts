// Whether two clocks agree: tokens are valid from one moment to another.
import { type Finding, failure, ok, unknown, warning } from '../finding.ts';

/** A token that is issued now lives for minutes: beyond that none is ever accepted. */
const HOPELESS_SECONDS = 300;

export interface ComparedClocks {
  /** By how many seconds the provider's clock is ahead; undefined where it did not tell. */
  readonly offset: number | undefined;
  readonly toleranceSeconds: number;
  /** `this machine`, `the gateway`. */
  readonly other: string;
}

const CHECK = 'clock';

export function judgeClock({ offset, toleranceSeconds, other }: ComparedClocks): Finding {
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
  return (seconds >= HOPELESS_SECONDS ? failure : warning)(CHECK, what, advice);
}
