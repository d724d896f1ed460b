// npm run start:conformance: the gateway that the official conformance tool expects, until a
// signal ends it.
import { endWithProcess } from '../src/cli/end.ts';
import { createLog } from '../src/core/log.ts';
import { ConfigError } from '../src/index.ts';
import { startConformanceGateway } from '../test/support/conformance-gateway.ts';

const starting = startConformanceGateway(process.env);
endWithProcess(createLog('error'), async () => (await starting).close());
starting.then(
  ({ mcpUrl }) => console.log(`MCP URL: ${mcpUrl}`),
  (error: unknown) => {
    console.error(error instanceof ConfigError ? error.problems.join('\n') : String(error));
    process.exit(1);
  },
);
