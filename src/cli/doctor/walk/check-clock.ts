import type { Finding } from '../finding.ts';
import { judgeClock } from '../provider/judge-clock.ts';
import type { Walk } from './walk.ts';

/** The default of OIDC_CLOCK_TOLERANCE_SECONDS: what is set cannot be seen from outside. */
const TOLERANCE_SECONDS = 5;

/** The provider's clock against the gateway's, both seen from here. */
export async function checkWalkClock({
  baseUrl,
  clocks,
  logIn,
}: Walk): Promise<readonly Finding[]> {
  const login = await logIn();
  if (login?.kind !== 'at-provider') return [];
  const provider = clocks.readOffset(new URL(login.url).origin);
  const gateway = clocks.readOffset(new URL(baseUrl).origin);
  const offset = provider === undefined || gateway === undefined ? undefined : provider - gateway;
  return [judgeClock({ offset, toleranceSeconds: TOLERANCE_SECONDS, other: 'the gateway' })];
}
