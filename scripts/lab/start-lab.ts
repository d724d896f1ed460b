// The servers of the lab: a provider at each port, a gateway in front of those that were named, and the page about them.
import { getErrorCode } from '../../src/platform/error-code.ts';
import type { Log, LogLevel } from '../../src/platform/log.ts';
import { type Emulator, startEmulator } from '../../test/support/providers/emulator.ts';
import { EMULATED } from '../../test/support/providers/emulators.ts';
import {
  type GatewayInFront,
  startGatewayInFront,
} from '../../test/support/providers/gateway-in-front.ts';
import { listenOnLoopback } from '../../test/support/upstreams/listen.ts';
import { createLabPage } from './lab-page.ts';

export interface LabOptions {
  /** Those that get a gateway each; without one, all providers and no gateway. */
  readonly names: readonly string[];
  /** Port of the page; providers and gateways have the ports after it. */
  readonly port: number;
  /** The gateway to notify of logouts, where the lab has none of its own. */
  readonly gatewayUrl: string;
  readonly logLevel: LogLevel;
}

export interface LabProvider {
  readonly name: string;
  readonly emulator: Emulator;
  readonly gateway: GatewayInFront | undefined;
}

export interface Lab {
  readonly pageUrl: string;
  readonly providers: readonly LabProvider[];
  close(): Promise<void>;
}

/** Gateways begin at this distance from the page: a provider keeps its ports, whichever others are started. */
const GATEWAYS_FROM = 1 + EMULATED.size;

/** @throws Error, whose message is for the person, where a port is taken. */
export async function startLab(options: LabOptions, log: Log): Promise<Lab> {
  const { names, port, gatewayUrl } = options;
  const closers: (() => Promise<void>)[] = [];
  const close = async () => {
    for (const closeOne of closers.splice(0).reverse()) await closeOne();
  };

  async function startProvider(name: string, index: number): Promise<LabProvider> {
    const habits = EMULATED.get(name);
    if (habits === undefined) throw new Error(`There is no ${name} here.`);
    const emulator = await startEmulator(habits, { port: port + 1 + index, asksWho: true });
    closers.push(emulator.close);
    emulator.logoutUrl = buildLogoutUrl(gatewayUrl);
    if (!names.includes(name)) return { name, emulator, gateway: undefined };
    const gateway = await startGatewayInFront({
      emulator,
      deps: { log },
      port: port + GATEWAYS_FROM + index,
    });
    closers.push(gateway.close);
    emulator.logoutUrl = buildLogoutUrl(gateway.baseUrl);
    return { name, emulator, gateway };
  }

  try {
    const providers: LabProvider[] = [];
    for (const [index, name] of [...EMULATED.keys()].entries()) {
      if (names.length > 0 && !names.includes(name)) continue;
      providers.push(await startProvider(name, index));
    }
    const page = await listenOnLoopback(createLabPage(providers), port, '/');
    closers.push(page.close);
    return { pageUrl: `http://localhost:${port}/`, providers, close };
  } catch (error) {
    await close();
    if (getErrorCode(error) !== 'EADDRINUSE') throw error;
    throw new Error(
      `A port from ${port} to ${port + 2 * EMULATED.size} is taken, perhaps by another lab. Choose others: npm run lab -- --port ${port + 100}`,
    );
  }
}

const buildLogoutUrl = (gatewayUrl: string): string =>
  `${gatewayUrl.replace(/\/+$/, '')}/oauth/backchannel-logout`;
