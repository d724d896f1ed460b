// The servers behind the gateway as a feature.

import { describeNamed } from '../control/rules/named-facts.ts';
import type { UserContext } from '../http/endpoint/message.ts';
import { defineFeature } from '../mcp/feature.ts';
import type { GatewayFile, Setup } from './configuration/gateway-file.ts';
import type { OpenServedFile, UpstreamPorts } from './create-upstreams.ts';

/** Loaded only if there is a configuration file, since this is a quarter of all code. */
const loadUpstreams = () => import('./create-upstreams.ts');

export const servers = defineFeature({
  name: 'servers',
  async open(
    runtime,
    needs: UpstreamPorts & {
      /** Undefined without a configuration file: then the gateway serves only its own catalogue. */
      readonly setup: Setup | undefined;
      readonly servedFile: OpenServedFile;
      readonly lockCommand: string;
      readonly operated: object | undefined;
    },
  ) {
    const { setup, ownCatalog, lockCommand } = needs;
    runtime.notifier.use(setup?.file.notify);
    const opened = setup && (await (await loadUpstreams()).openUpstreams(runtime, setup, needs));
    const catalogs = opened?.catalogs;
    const all = catalogs?.all ?? ownCatalog;
    return {
      gives: {
        upstreams: opened,
        all,
        findNamed: catalogs?.findNamed ?? (() => undefined),
        catalog: all,
        hasPaths: opened !== undefined,
        judge: catalogs?.served.judge,
        getGuards: catalogs?.served.getGuards,
        describeUser: (user: UserContext) => opened && describeNamed(user, opened.getNamedFacts()),
      },
      ...(needs.operated && {
        // Loaded only if there are operators.
        panels: (await import('./server-panels.ts')).createServerPanels(
          runtime,
          opened,
          lockCommand,
        ),
      }),
      ...(opened && {
        endpoints: opened.endpoints,
        readiness: { servers: opened.checkRequired },
        async prepare(next: Setup) {
          const commit = await opened.prepare(next);
          return async () => {
            await commit();
            needs.servedFile.replace(next.file);
            runtime.notifier.use(next.file.notify);
          };
        },
        close: opened.close,
      }),
    };
  },
});

/** Loads no code for servers if there is no configuration file. */
export const openServedFile = async (file: GatewayFile | undefined): Promise<OpenServedFile> =>
  file === undefined ? NO_FILE : (await loadUpstreams()).createServedFile(file);

const NO_FILE: OpenServedFile = {
  has: () => false,
  getTitle: () => undefined,
  listConnectionServers: () => [],
  listNamedClaims: () => [],
  replace() {},
};
