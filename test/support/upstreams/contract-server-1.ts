// The server of the contract of upstreams on stdio, of the session era.
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { createSdk1Server } from './sdk-1-tools.ts';
import { createWaits } from './waits.ts';

await createSdk1Server(createWaits()).connect(new StdioServerTransport());
