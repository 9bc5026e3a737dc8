/** The picture: for each algorithm the traffic in grey and what leaves in colour, 50 ms a bar. */
export declare function admissionPlot(): string
/** Where the guide's picture lies. */
export declare const plotFile: URL
//# sourceMappingURL=plots.d.ts.map
