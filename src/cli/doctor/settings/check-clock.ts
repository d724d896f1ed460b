import type { Finding } from '../finding.ts';
import { judgeClock } from '../provider/judge-clock.ts';
import { isDiscovered } from './check-discovery.ts';
import type { SettingsAtHand } from './settings-at-hand.ts';

/** By the Date of the provider's answers. */
export async function checkClock({
  access,
  config: { auth },
  clocks,
}: SettingsAtHand): Promise<readonly Finding[]> {
  if (access === undefined || !auth.required || !(await isDiscovered(access))) return [];
  const { issuer, jwksUrl } = access.provider;
  const offset = [issuer, ...(jwksUrl === undefined ? [] : [jwksUrl])]
    .map((url) => clocks.readOffset(new URL(url).origin))
    .find((one) => one !== undefined);
  return [
    judgeClock({ offset, toleranceSeconds: auth.clockToleranceSeconds, other: 'this machine' }),
  ];
}
