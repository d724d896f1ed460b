// Logins through a gateway in front of an emulated provider, one step at a time.
import { type ManualClock, manualClock } from '../gateway/clock.ts';
import { startGateway, type TestGateway } from '../gateway/gateway.ts';
import { BASE, createOwnTokenLogins, type OwnTokenLogins } from '../oauth/own-tokens.ts';
import { type Emulator, startEmulator } from './emulator.ts';
import type { Habits } from './habits.ts';
import { ADA } from './login-page.ts';

export interface LoginsAtProvider extends OwnTokenLogins {
  readonly emulator: Emulator;
  readonly gateway: TestGateway;
  readonly clock: ManualClock;
  close(): Promise<void>;
}

export async function startLoginsAt(
  habits: Habits,
  env: Readonly<Record<string, string>> = {},
): Promise<LoginsAtProvider> {
  const clock = manualClock(1_800_000_000_000);
  const emulator = await startEmulator(habits, { clock });
  const gateway = await startGateway({
    deps: { clock },
    // The one of the tests' own issuer is not of every provider.
    env: { BASE_URL: BASE, OIDC_ISSUER: '', ...emulator.env, ...env },
  });
  const provider = { logIn: (asked: URL) => emulator.logIn(asked, emulator.person ?? ADA) };
  return {
    ...createOwnTokenLogins(gateway, provider),
    emulator,
    gateway,
    clock,
    async close() {
      await gateway.close();
      await emulator.close();
    },
  };
}
