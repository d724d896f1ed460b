// The servers behind the gateway, as it opens them.

import { describeNamed } from '../control/rules/named-facts.ts';
import type { UserContext } from '../http/endpoint/message.ts';
import { createLockPanels } from '../lock/lock-panels.ts';
import { joinPolicies } from '../mcp/calls/policy.ts';
import { defineFeature } from '../mcp/feature.ts';
import type { Setup } from './configuration/gateway-file.ts';
import type { UpstreamPorts } from './create-upstreams.ts';
import { createServerPanels } from './server-panels.ts';

interface ServersNeeds extends UpstreamPorts {
  /** Undefined without a configuration file: the gateway serves its own catalogue alone. */
  readonly setup: Setup | undefined;
  readonly lockCommand: string;
  readonly operated: object | undefined;
}

export const servers = defineFeature({
  name: 'servers',
  async open(runtime, needs: ServersNeeds) {
    const { setup, ownCatalog, lockCommand } = needs;
    const opened = setup && (await (await loadUpstreams()).openUpstreams(runtime, setup, needs));
    const catalogs = opened?.catalogs ?? {
      all: ownCatalog,
      findNamed: () => undefined,
      policies: joinPolicies([]),
    };
    return {
      gives: {
        upstreams: opened,
        all: catalogs.all,
        findNamed: catalogs.findNamed,
        catalog: catalogs.all,
        hasPaths: opened !== undefined,
        judge: catalogs.policies.judge,
        getGuards: () => opened?.getGuards(),
        describeUser: (user: UserContext) => opened && describeNamed(user, opened.getNamedFacts()),
      },
      ...(needs.operated && {
        panels: [
          ...createServerPanels(opened),
          ...createLockPanels(runtime, opened?.lockApproval, lockCommand),
        ],
      }),
      ...(opened && {
        endpoints: opened.endpoints,
        readiness: { servers: opened.checkRequired },
        prepare: opened.prepare,
        close: opened.close,
      }),
    };
  },
});

/** Loaded where there is a configuration file: a quarter of all code. */
const loadUpstreams = () => import('./create-upstreams.ts');
