import type { Fault } from '../fault.ts';
import { connectionFaults } from './connections.ts';
import { embeddedFaults } from './embedded.ts';
import { failOverFaults } from './fail-over.ts';
import { keySetFaults } from './key-set.ts';
import { limitFaults } from './limits.ts';
import { longCallFaults } from './long-calls.ts';
import { malformedFaults } from './malformed.ts';
import { networkFaults } from './network.ts';
import { overloadFaults } from './overload.ts';
import { ownTokenFaults } from './own-tokens.ts';
import { redisFaults } from './redis.ts';
import { replicaFaults } from './replicas.ts';
import { starvedFaults } from './starved.ts';
import { tokenEndpointFaults } from './token-endpoint.ts';

export const FAULTS: readonly Fault[] = [
  ...redisFaults,
  ...networkFaults,
  ...failOverFaults,
  ...embeddedFaults,
  ...keySetFaults,
  ...tokenEndpointFaults,
  ...ownTokenFaults,
  ...replicaFaults,
  ...longCallFaults,
  ...limitFaults,
  ...connectionFaults,
  ...starvedFaults,
  ...overloadFaults,
  ...malformedFaults,
];
