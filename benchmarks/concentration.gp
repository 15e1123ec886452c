# Plots concentration.csv of concentration: docs/plots/concentration.svg
set datafile separator ','
set terminal svg size 620,420 font 'sans-serif,13' background 'white'
set output 'docs/plots/concentration.svg'
set logscale xy
set key outside right samplen 2
set xlabel 'rows n'
set ylabel 'error'
set format y '10^{%L}'
data = folder.'/concentration.csv'
plot data using 1:2 with linespoints pt 7 ps 0.6 title 'shifted CI-RIP', \
     data using 1:3 with linespoints pt 7 ps 0.6 title '1''A(M)/n - tr(M)', \
     data using 1:4 with linespoints pt 7 ps 0.6 title '1''X''w/n', \
     data using 1:5 with linespoints pt 7 ps 0.6 title 'A''(X''w)/n', \
     data using 1:6 with linespoints pt 7 ps 0.6 title 'X A(M)/n', \
     data using 1:7 with linespoints pt 7 ps 0.6 title 'I - XX''/n', \
     10/sqrt(x) with lines dt 2 lc 'black' title 'slope -1/2'
