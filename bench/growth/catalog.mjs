// A catalogue of as many tools as the variable TOOLS says. The last one is the one that is called.
import { createLocalCatalog, defineTool } from 'postern/define';

const createTool = (name) =>
  defineTool({
    name,
    description: 'Answers with the name of the service and your message.',
    inputSchema: {
      type: 'object',
      properties: { message: { type: 'string', description: 'Text to send back.' } },
      additionalProperties: false,
    },
    run: ({ message }, { service }) => ({
      content: [{ type: 'text', text: `${service.displayName} MCP Server: ${message}` }],
    }),
  });

const others = Array.from({ length: Number(process.env.TOOLS) - 1 }, (_, n) =>
  createTool(`tool_${n}`),
);

export default createLocalCatalog({ tools: [...others, createTool('service_ping')] });
