// npm run start:conformance: the gateway that the official conformance tool expects, until a
// signal ends it.

import { StartError } from '../src/cli/command-line/errors.ts';
import { handleProcessEnd } from '../src/cli/command-line/process-end.ts';
import { ConfigError } from '../src/index.ts';
import { createLog } from '../src/platform/log.ts';
import { startConformanceGateway } from '../test/support/tools/conformance-gateway.ts';

const starting = startConformanceGateway(process.env);
handleProcessEnd(createLog('error'), async () => (await starting).close());
starting.then(
  ({ mcpUrl }) => console.log(`MCP URL: ${mcpUrl}`),
  (error: unknown) => {
    console.error(describeError(error));
    process.exit(1);
  },
);

function describeError(error: unknown): string {
  if (error instanceof ConfigError) return error.problems.join('\n');
  return error instanceof StartError ? error.message : String(error);
}
