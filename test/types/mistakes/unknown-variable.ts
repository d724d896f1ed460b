// tsc: Property 'servce' does not exist on type '{ readonly path: string; readonly service: string; }'.
import { defineResourceTemplate } from 'postern/define';

defineResourceTemplate({
  uriTemplate: 'source://{service}/{+path}',
  name: 'source',
  description: 'A file of a service.',
  read: ({ servce }) => ({ text: servce }),
});
