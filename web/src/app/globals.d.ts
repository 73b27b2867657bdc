/** The page's version, put in by the build. */
declare const __VERSION__: string;

declare module "*.css";

declare module "*.css?inline" {
  const text: string;
  export default text;
}

declare module "*.wasm?url" {
  const url: string;
  export default url;
}
